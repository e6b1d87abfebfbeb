"""Releases: an allocation goes offline, that is recorded on disk, and the controller is notified until it settles it.

A record per allocation: RELEASING (about to go offline) -> RELEASED (offline; the controller may not know) -> SETTLED
(it knows; kept for a while so that a late grant of the same allocation is refused). With a driver that needs long, an
allocation goes offline in the background; nobody can map it meanwhile.

One that went offline in the boot in which that began has nothing in this host's CPU caches: its driver wrote them back
first. What they had at a restart is lost, and by then the guest may have been on its way to another host.
"""

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from oslo_log import log

from pondstack.devices import NAMESPACE
from pondstack.domain.errors import Conflict, DeviceFailed, InUse, PondError, Unavailable
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.drivers import HostPools
from pondstack_agent.executor import Executor
from pondstack_agent.records import Records

LOG = log.getLogger(__name__)

RELEASING, RELEASED, SETTLED = "releasing", "released", "settled"


class Releases:
    """The allocations that this host gave back."""

    def __init__(
        self,
        *,
        host: str,
        records: Records,
        pools: HostPools,
        controller: ControllerAPI,
        executor: Executor,
        clock: Callable[[], float],
        boot: str,
    ) -> None:
        """`boot`: which one this is (pondstack_agent.host.boot)."""
        self._host = host
        self._records = records
        self._pools = pools
        self._controller = controller
        self._executor = executor
        self._clock = clock
        self._boot = boot
        self._lock = threading.Lock()
        self._finishing: set[str] = set()

    def release(self, allocation_uuid: str, not_zero: Sequence[int] = ()) -> bool:
        """Offline an allocation and have the controller notified; False when it was not online.

        `not_zero`: those of its slices that had somebody's bytes before their first use; the next report tells it.
        If its driver needs long, it goes offline in the background; nobody can map it meanwhile. Raises InUse while a
        process maps it; nothing has changed then.
        """
        if not_zero:
            self._put(allocation_uuid, RELEASING, not_zero)
        if self._begin(allocation_uuid):
            self._executor.submit(self._finish, allocation_uuid)
            return True
        had = self._offline(allocation_uuid)
        self._executor.submit(self.notify, allocation_uuid)
        return had

    def offline(self, allocation_uuid: str) -> bool:
        """Offline an allocation on the controller's command; True when that is done.

        False: it goes offline in the background, and the controller is notified then. Raises InUse. Heartbeats tell the
        release until a leader has settled it: the answer may be lost, or reach a leader that has been deposed.
        """
        if self._begin(allocation_uuid):
            self._executor.submit(self._finish, allocation_uuid)
            return False
        self._offline(allocation_uuid)
        return True

    def has(self, allocation_uuid: str) -> bool:
        """Tell whether an allocation was given back, or is on its way."""
        return self._records.get(allocation_uuid) is not None

    def refuse_released(self, allocation_uuid: str) -> None:
        """Raise Conflict when an allocation was given back: it never comes online again."""
        if self.has(allocation_uuid):
            raise Conflict(
                f"allocation {allocation_uuid} was already given back by host {self._host}; attach with a new "
                "operation id"
            )

    def pending(self) -> tuple[str, ...]:
        """Return the allocations whose release the controller has not settled yet."""
        return tuple(key for key, record in self._records.all().items() if record["state"] == RELEASED)

    def not_zero(self) -> dict[str, list[int]]:
        """Return which slices of pending releases had somebody's bytes before their first use."""
        told = {key: self._records.get(key) or {} for key in self.pending()}
        return {key: list(record["not_zero"]) for key, record in told.items() if record.get("not_zero")}

    def written_back(self) -> tuple[str, ...]:
        """Return the pending releases of which this host's CPU caches had nothing that was not in memory."""
        told = {key: self._records.get(key) or {} for key in self.pending()}
        return tuple(key for key, record in told.items() if record.get("written_back"))

    def notify(self, allocation_uuid: str) -> None:
        """Notify the controller; each heartbeat repeats what it does not take now.

        A release that tells of slices that are not zero goes with a report only: the call has no room for that.
        """
        if allocation_uuid in self.not_zero():
            return
        operation_id = str(uuid.uuid5(NAMESPACE, f"release:{allocation_uuid}"))
        try:
            self._controller.release(operation_id=operation_id, allocation_uuid=allocation_uuid, host=self._host)
        except Unavailable as error:
            LOG.debug("Release of allocation %s waits for the next heartbeat: %s", allocation_uuid, error)
        except PondError as error:
            LOG.warning("The controller refuses the release of allocation %s: %s", allocation_uuid, error)
        else:
            self.settle([allocation_uuid])

    def settle(self, allocations: Iterable[str]) -> None:
        """Note that the controller knows of these releases."""
        for allocation_uuid in allocations:
            record = self._records.get(allocation_uuid)
            if record is not None and record["state"] == RELEASED:
                self._put(allocation_uuid, SETTLED)

    def retry(self, after_seconds: float) -> None:
        """Try again to take offline what would not go, when the last try was longer ago than `after_seconds`."""
        for allocation_uuid, record in self._records.all().items():
            late = self._clock() - record["at"] > after_seconds
            if record["state"] == RELEASING and late and allocation_uuid in self._pools.stuck():
                self._executor.submit(self._finish, allocation_uuid)

    def recover(self) -> None:
        """Finish what a crash interrupted between "about to go offline" and "offline"."""
        for allocation_uuid, record in self._records.all().items():
            if record["state"] == RELEASING:
                try:
                    if self._begin(allocation_uuid):
                        self._executor.submit(self._finish, allocation_uuid)
                        continue
                    self._offline(allocation_uuid)
                except InUse:
                    LOG.warning("Allocation %s was to be released, but a guest runs on it: it stays", allocation_uuid)

    def prune(self, keep_seconds: float) -> None:
        """Forget what was settled longer ago than any message can live."""
        for allocation_uuid, record in self._records.all().items():
            if record["state"] == SETTLED and self._clock() - record["at"] > keep_seconds:
                self._records.remove(allocation_uuid)

    def _begin(self, allocation_uuid: str) -> bool:
        """Begin the detach in a driver that needs long for it; False when no such driver has the allocation."""
        if not self._pools.slow_detach:
            return False
        with self._releasing(allocation_uuid) as before:
            slow = self._pools.begin_detach(allocation_uuid)
        if not slow and before is None:
            self._records.remove(allocation_uuid)
        return slow

    def _finish(self, allocation_uuid: str) -> None:
        """Take an allocation offline in the background, then notify; `retry` tries again what stays stuck."""
        with self._lock:
            if allocation_uuid in self._finishing:
                return
            self._finishing.add(allocation_uuid)
        try:
            self._offline(allocation_uuid)
        except PondError as error:
            LOG.warning("Allocation %s was to be released and is not offline: %s", allocation_uuid, error)
        else:
            self.notify(allocation_uuid)
        finally:
            with self._lock:
                self._finishing.discard(allocation_uuid)

    def _offline(self, allocation_uuid: str) -> bool:
        with self._releasing(allocation_uuid) as before:
            had = self._pools.detach(allocation_uuid)
        if _unfinished(before):
            self._put(allocation_uuid, RELEASED)
        return had

    @contextmanager
    def _releasing(self, allocation_uuid: str) -> Iterator[dict[str, Any] | None]:
        """Have it on disk that an allocation goes offline while it may have begun to; yields what was there before."""
        before = self._records.get(allocation_uuid)
        if before is None:
            self._put(allocation_uuid, RELEASING)
        try:
            yield before
        except PondError:
            if _unfinished(before):
                if allocation_uuid in self._pools.stuck():
                    self._put(allocation_uuid, RELEASING)  # nobody uses it any more; it is tried again
                else:
                    self._records.remove(allocation_uuid)
            raise

    def _put(self, allocation_uuid: str, state: str, not_zero: Sequence[int] = ()) -> None:
        before = self._records.get(allocation_uuid) or {}
        told = list(not_zero) or before.get("not_zero", [])
        boot = before.get("boot", "") if before else self._boot_of(allocation_uuid)  # "": of a former release, too
        written = before.get("written_back", False) or (state == RELEASED and boot == self._boot)
        record = {"state": state, "at": self._clock(), "not_zero": told, "boot": boot, "written_back": written}
        self._records.put(allocation_uuid, record)

    def _boot_of(self, allocation_uuid: str) -> str:
        """Return the boot in which all that a guest wrote can be written back, "": none any more."""
        try:
            return "" if self._pools.lost_caches(allocation_uuid) else self._boot
        except DeviceFailed:
            return ""  # nobody can tell whether it has an heir


def _unfinished(record: Mapping[str, Any] | None) -> bool:
    return record is None or record["state"] == RELEASING
