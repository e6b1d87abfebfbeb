"""What a leader does for the quality of service: watches VMs with pool memory, predicts long-lived ones again, tells.

Threads: the monitor, the repredictor, and one that sends notifications of mitigations.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sqlalchemy.orm import Session

from pondstack.controller.gate import Gate
from pondstack.controller.leader.mitigation_notifier import MitigationNotifier
from pondstack.controller.leader.qos_endpoint import QosEndpoint
from pondstack.controller.resources import ControllerResources
from pondstack.controller.workers import PeriodicWorker
from pondstack.db.store import SQL, mitigation_notices, qos
from pondstack.domain.mitigation import MitigationMethod, MitigationTrigger
from pondstack.domain.pool_guest import PoolGuest
from pondstack.ledger.ledger import Ledger
from pondstack.prediction.choice import Limits
from pondstack.qos.monitor import Monitor
from pondstack.qos.outliers import Outliers
from pondstack.qos.past import read_past
from pondstack.qos.repredictor import Repredictor
from pondstack.qos.sensitivity import Sensitivity, SlowdownModel

STOP_SECONDS = 1.0
"""How long stop() waits for a round under way; what a former leader would write is fenced."""
NOTIFY_SECONDS = 2.0
"""Seconds between two looks for mitigations of which nobody was told."""


class Mitigations(Protocol):
    """The part of the leader that carries mitigations out."""

    def begin(
        self,
        consumer_uuid: str,
        *,
        trigger: MitigationTrigger,
        forced: bool = False,
        method: MitigationMethod | None = None,
        evidence: Mapping[str, Any] | None = None,
    ) -> Any:
        """Begin one."""


class Quality:
    """The three threads of one epoch, and what tenants call."""

    def __init__(
        self,
        resources: ControllerResources,
        ledger: Ledger,
        gate: Gate,
        mitigations: Mitigations,
        serving: Callable[[], SlowdownModel | None],
    ) -> None:
        """`serving()`: what the model of latency sensitivity that serves says, None while none does."""
        self._resources = resources
        self._mitigations = mitigations
        self._serving = serving
        conf, database = resources.conf, resources.database
        lease_seconds = conf.ha.lease_seconds

        def fence(session: Session) -> None:
            SQL.check_epoch(session, ledger.epoch, lease_seconds)

        self.endpoint = QosEndpoint(ledger=ledger, gate=gate)
        self._outliers = Outliers(database, resources.reader.history, lambda: Limits.of(conf.model))
        self.monitor = Monitor(
            conf,
            database,
            self._sensitivity,
            lambda: database.read(read_past),
            self._begin,
            fence,
            kept=resources.counts.decided,
        )
        self.repredictor = Repredictor(conf, database, resources.reader, fence)
        self.notifier = MitigationNotifier(database, resources.notify_mitigated, fence)
        group = conf.qos
        self._workers = (
            PeriodicWorker("qos monitor", group.interval_seconds, self._watch),
            PeriodicWorker("repredictor", group.repredict_seconds, self.repredictor.run),
            PeriodicWorker("mitigation notifier", NOTIFY_SECONDS, self.notifier.run),
        )

    def start(self) -> None:
        """Begin with a round of each."""
        for worker in self._workers:
            worker.start()

    def stop(self) -> None:
        """End each after what it does now."""
        for worker in self._workers:
            worker.stop(STOP_SECONDS)

    def _watch(self) -> None:
        self.monitor.run()
        keep = float(self._resources.conf.qos.keep_decisions_seconds)
        self._resources.database.write(lambda session: _forget(session, keep))

    def _sensitivity(self) -> Sensitivity:
        return Sensitivity(tuple(model for model in (self._serving(), self._outliers.model()) if model is not None))

    def _begin(self, guest: PoolGuest, evidence: Mapping[str, Any]) -> object:
        return self._mitigations.begin(
            guest.consumer_uuid, trigger=MitigationTrigger.MONITOR, forced=False, method=None, evidence=dict(evidence)
        )


def _forget(session: Session, keep_seconds: float) -> None:
    qos.prune(session, keep_seconds)
    mitigation_notices.prune(session)
