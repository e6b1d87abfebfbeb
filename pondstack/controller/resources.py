"""What a controller has whether it leads or not, made once in a process."""

import os
import time
from pathlib import Path
from uuid import uuid4

from oslo_config import cfg

from pondstack.clients.bmc import load_bmcs
from pondstack.clients.nova import Nova
from pondstack.clients.placement import Placement
from pondstack.controller.lending.sealing import EscrowSealer
from pondstack.controller.pool.devices import DeviceSpec, load_device, parse_spec
from pondstack.db.connection.engine import Database
from pondstack.db.connection.watch import Watch
from pondstack.db.read.reader import SqlReader
from pondstack.db.store.history import History
from pondstack.db.store.host_telemetry import HostTelemetry
from pondstack.db.store.leadership import SqlLeadership
from pondstack.db.store.telemetry import Retention, Telemetry
from pondstack.devices.base import PoolDevice
from pondstack.ha.terms import broker_terms_of, terms_of
from pondstack.rpc import transport as rpc
from pondstack.telemetry.metrics import Counts
from pondstack.telemetry.mitigation_events import MitigatedGuests
from pondstack.telemetry.transition_events import Transitions
from pondstack.telemetry.versioned import FailedGuests

TIDY_ANSWER_SECONDS = 30.0
"""What the database may take for one statement that tidies what was measured."""


def since_boot() -> float:
    """Return seconds by a clock that goes on while this process, or the whole machine, is stopped."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def sealer_of(conf: cfg.ConfigOpts) -> EscrowSealer | None:
    """Return what seals keys in escrow, None where there are no sealing keys; raises BadRequest."""
    path: str = conf.controller.sealing_keys_file
    return EscrowSealer.load(Path(path)) if path else None


class ControllerResources:
    """Configuration, database, bus, device drivers, Placement. Raises BadRequest for options that cannot work."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.conf = conf
        self.clock = since_boot
        self.terms = terms_of(conf)
        self.broker_terms = broker_terms_of(conf)
        self.name = conf.controller.name
        self.holder = f"{self.name}:{os.getpid()}:{uuid4().hex[:8]}"
        self.database = Database.from_conf(conf)
        # Connections of its own: a renewal waits neither behind requests nor longer than it is worth.
        seconds = self.terms.renew_seconds
        self._lease_database = Database.from_conf(
            conf,
            retry_seconds=seconds,
            connect_seconds=self.terms.lease_seconds,
            answer_seconds=self.terms.lease_seconds,
        )
        self._lease_watch = Watch(self._lease_database)
        self.leadership = SqlLeadership(self._lease_database, self._lease_watch)
        self.reader = SqlReader(
            self.database, conf.controller.agent_down_seconds, conf.ha.node_down_seconds, conf.prediction.gap_seconds
        )
        self.specs = [parse_spec(text) for text in conf.controller.pool_devices]
        self._devices = {spec: load_device(spec) for spec in self.specs}
        self.placement = Placement.from_conf(conf) if conf.placement.enabled else None
        self.bus = rpc.get_controller_transport(conf)
        # What a rack measured in an hour is summed up in one statement, for which nobody waits.
        patience = max(TIDY_ANSWER_SECONDS, conf.database.answer_seconds)
        self._tidying_database = Database.from_conf(conf, answer_seconds=patience)
        self.telemetry = Telemetry(self.database, self._retention, self._tidying_database)
        self.host_telemetry = HostTelemetry(self.database, lambda: int(conf.telemetry.keep_host_samples_seconds))
        self.history = History(self.database, lambda: int(conf.prediction.keep_history_seconds))
        self.measured = (self.telemetry, self.host_telemetry, self.history)
        self.servers = Nova.from_conf(conf) if conf.placement.enabled else None
        self.nova = self.servers if conf.nova.backfill else None
        self.sealer = sealer_of(conf)
        self.bmcs = load_bmcs(conf.sleep.bmc_file)
        self.counts = Counts()
        if self.bus.border is not None:
            self.bus.border.refused = self.counts.refused
        self.notify_failed = FailedGuests(conf, self.name)
        self.notify_mitigated = MitigatedGuests(conf, self.name)
        self.notify_transition = Transitions(conf, self.name)

    def device(self, spec: DeviceSpec) -> PoolDevice:
        """Return the driver object of a device."""
        return self._devices[spec]

    def _retention(self) -> Retention:
        group = self.conf.telemetry
        gap = self.conf.prediction.gap_seconds
        return Retention(group.keep_samples_seconds, group.period_seconds, group.keep_periods_seconds, gap)

    def close(self) -> None:
        """Close bus and databases."""
        self.bus.cleanup()
        self.notify_failed.close()
        self.notify_mitigated.close()
        self.notify_transition.close()
        self._lease_watch.close()
        for database in (self._lease_database, self._tidying_database, self.database):
            database.dispose()
