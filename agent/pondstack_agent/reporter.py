"""What this host reports to the controller, and what it does with the answer."""

import threading
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

from oslo_log import log

from pondstack.domain.errors import PondError
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.wire import Report
from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.drivers import HostPools
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.lending.lending import Lending
from pondstack_agent.pool.releases import Releases
from pondstack_agent.sequence import Sequence
from pondstack_agent.tiering import Tiering
from pondstack_agent.tiering.switch import TieringSwitch

LOG = log.getLogger(__name__)


class Reporter:
    """Reports and heartbeats of one host."""

    def __init__(
        self,
        *,
        host: str,
        pools: HostPools,
        releases: Releases,
        epoch: EpochGuard,
        sequence: Sequence,
        controller: ControllerAPI,
        tiering: Tiering,
        switch: TieringSwitch,
        lending: Lending | None = None,
        borrower: Borrower | None = None,
        remote: Callable[[], dict[str, Any]] | None = None,
        note_revoked: Callable[[Mapping[str, Any]], object] = lambda _moments: None,
    ) -> None:
        self._host = host
        self._pools = pools
        self._releases = releases
        self._epoch = epoch
        self._sequence = sequence
        self._controller = controller
        self._tiering, self._switch = tiering, switch
        self._lending = lending
        self._borrower, self._remote = borrower, remote
        self._note_revoked = note_revoked
        self._lock = threading.Lock()
        self._trouble = ""
        self.known_pools: dict[str, Any] | None = None

    def report(self) -> Report:
        """Return what is really attached now. A higher sequence number means a later look."""
        with self._lock:
            # The number first: what comes online after this look has a higher one (see AttachFlow).
            sequence = self._sequence.next()
            # In this order: what goes offline between the two looks is in the second and is struck from the first.
            attached = self._pools.attached()
            # What is written back is, for good; it is told of what this report lists.
            released, not_zero = self._releases.pending(), self._releases.not_zero()
            written_back = tuple(uuid for uuid in self._releases.written_back() if uuid in released)
            return Report(
                host=self._host,
                sequence=sequence,
                epoch=self._epoch.seen,
                version=version("pondstack"),
                pools=self._pools.pools(),
                attached=tuple(item for item in attached if item.allocation_uuid not in released),
                released=released,
                not_zero=not_zero,
                written_back=written_back,
                zeroing=self._pools.zeroing(),
                stuck=self._pools.stuck(),
                tiering=self._tiering.report(),
                lending=self._lending.report() if self._lending else None,
                borrowed=self._borrowed(),
                hands_over=self._pools.hands_over(),
            )

    def _borrowed(self) -> dict[str, Any] | None:
        if self._borrower is None:
            return None
        found = self._borrower.report()
        return found if self._remote is None else {**found, **self._remote()}

    def heartbeat(self) -> bool:
        """Report to the controller and settle what it confirms; False when that failed (logged once)."""
        trouble = ""
        try:
            answer = self._controller.heartbeat(self.report())
            # First: what an old controller says of releases and pools is not trusted.
            self._epoch.confirm(answer["epoch"])
            self._releases.settle(answer.get("forget", ()))
            self._note_pools(answer.get("pools", {}))
            if "revoked" in answer:
                self._note_revoked(answer["revoked"])
            if "tiering" in answer:  # a controller of the former release gives no orders
                self._switch.follow(answer["tiering"])
        except PondError as error:
            trouble = error.message
        return self._note(trouble)

    def _note_pools(self, pools: dict[str, Any]) -> None:
        if pools != self.known_pools:
            for uuid in sorted(set(self._pools.pools()) - set(pools)):
                LOG.warning("This host reaches pool %s, which the controller does not have: see its pool_devices", uuid)
            self.known_pools = pools

    def _note(self, trouble: str) -> bool:
        if trouble and not self._trouble:
            LOG.warning("Heartbeat of host %s failed, running guests are not concerned: %s", self._host, trouble)
        elif self._trouble and not trouble:
            LOG.info("Heartbeat of host %s works again", self._host)
        self._trouble = trouble
        return not trouble
