"""A host whose agent is this process: traffic straight to the controller, at a rate that real agents do not reach.

It keeps an agent's promises: online before it acknowledges, offline before it releases, reports in between, the highest
epoch remembered.
"""

import itertools
import logging
import threading
from typing import Any

import oslo_messaging

from pondstack.domain.errors import Conflict, PondError, StaleEpoch
from pondstack.rpc import targets
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.wire import Attached, Grant, Report
from tests.robustness.caller import NO_ANSWER

LOG = logging.getLogger(__name__)
BEAT_SECONDS = 2.0
_expected = oslo_messaging.expected_exceptions(PondError)


class OwnHost:
    """What is attached here, and the agent's side of RPC; thread-safe."""

    target = oslo_messaging.Target(version=targets.RPC_VERSION)

    def __init__(self, name: str, bus: Any, pool: str) -> None:
        self.name = name
        self.pool = pool
        self.epoch = 0
        self._bus = bus
        self._attached: dict[str, Attached] = {}
        self._released: set[str] = set()
        self._gone: set[str] = set()
        self._sequence = itertools.count(1)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._server: Any = None
        self._beat: threading.Thread | None = None

    def start(self) -> None:
        """Serve the controller's commands and report to it every few seconds."""
        target = targets.agent_target(self.name)
        self._server = self._bus.server(target, [self])
        self._server.start()
        self._beat = threading.Thread(target=self._beats, name=f"beat-{self.name}", daemon=True)
        self._beat.start()

    def stop(self) -> None:
        """End both."""
        self._stop.set()
        if self._beat is not None:
            self._beat.join(30.0)
        if self._server is not None:
            self._server.stop()
            self._server.wait()

    def online(self, grant: Grant) -> None:
        """Take a grant's slices into use; raises Conflict when they were given back meanwhile."""
        held = Attached(grant.allocation_uuid, grant.consumer_uuid, grant.pool_uuid, grant.extents, in_use=True)
        with self._lock:
            if grant.allocation_uuid in self._gone:
                raise Conflict(f"allocation {grant.allocation_uuid} was given back already")
            self.epoch = max(self.epoch, grant.epoch)
            self._attached[grant.allocation_uuid] = held

    def offline_here(self, allocation_uuid: str) -> None:
        """Stop using slices, for good; told in each report until the controller has settled it."""
        with self._lock:
            self._attached.pop(allocation_uuid, None)
            self._gone.add(allocation_uuid)
            self._released.add(allocation_uuid)

    def settled(self, allocation_uuid: str) -> None:
        """The controller knows that an allocation was released."""
        with self._lock:
            self._released.discard(allocation_uuid)

    @_expected
    def report(self, _context: Any, *, epoch: int) -> dict[str, Any]:
        """See AgentAPI.report."""
        self._check(epoch)
        return self._report().to_wire()

    @_expected
    def offline(self, _context: Any, *, epoch: int, operation_id: str, allocation_uuid: str) -> bool:
        """See AgentAPI.offline."""
        del operation_id
        self._check(epoch)
        with self._lock:
            self._attached.pop(allocation_uuid, None)
            self._gone.add(allocation_uuid)
        return True

    def _check(self, epoch: int) -> None:
        with self._lock:
            if epoch < self.epoch:
                raise StaleEpoch(f"host {self.name} has seen epoch {self.epoch} and refuses {epoch}")
            self.epoch = epoch

    def _report(self) -> Report:
        with self._lock:
            return Report(
                host=self.name,
                sequence=next(self._sequence),
                epoch=self.epoch,
                version="0.1.0",
                pools=(self.pool,),
                attached=tuple(self._attached.values()),
                released=tuple(sorted(self._released)),
            )

    def _beats(self) -> None:
        api = ControllerAPI(self._bus)
        while not self._stop.is_set():
            try:
                answer = api.heartbeat(self._report())
                self._check(int(answer["epoch"]))
                for uuid in answer["forget"]:
                    self.settled(uuid)
            except (*NO_ANSWER, StaleEpoch) as error:
                LOG.info("A heartbeat of %s is lost: %s", self.name, error)
            self._stop.wait(BEAT_SECONDS)
