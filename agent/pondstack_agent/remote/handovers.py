"""Hand-overs of guests between hosts' data planes, for a live migration: what this agent asks its own one.

libvirt runs the guest at the destination and ends the source's QEMU before anybody can say so. So nobody orders the
switch: from the offer on the data plane counts a guest whose process has ended as the destination's.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from oslo_log import log

from pondstack.domain.errors import Conflict, HostUnusable, PondError, Unavailable
from pondstack_agent.data_plane.client import DataPlane, Origin
from pondstack_agent.data_plane.errors import DataPlaneRefused
from pondstack_agent.data_plane.guest_memory import FindMemory, GuestMemory
from pondstack_agent.data_plane.pager_settings import DEFAULT_PAGER, PagerSettings
from pondstack_agent.data_plane.views import GuestView, HandoverView
from pondstack_agent.remote.records import Consumer, Consumers, Extension, State

LOG = log.getLogger(__name__)

_PAUSE_SECONDS = 0.05
_BACK_SECONDS = 20.0
"""How long a guest that is taken back may take until it writes again."""
_RETRY_SECONDS = 0.02
"""Between two looks whether QEMU has its memory: libvirt goes on meanwhile."""
_MEMORY_SECONDS = 30.0
_STARTS = ("no shared writable mapping", "was not started with -uuid")
"""What the data plane says of a guest's process that has no memory yet, or no command line: between two programs that
it becomes in turn, such as a shim around QEMU and QEMU, a process has none for a moment."""


@dataclass(frozen=True, slots=True)
class HandoverLimits:
    """Of one host. `address`: where its data plane listens, '' for nowhere. Seconds: of a silent peer that the source
    waits for; of an offer that nobody takes; of a destination that has not fetched all and does not come back."""

    address: str = ""
    silence_seconds: float = 30.0
    arrival_seconds: float = 1800.0
    abandoned_seconds: float = 3600.0


NO_HANDOVER = HandoverLimits()


def abandoned(seen: HandoverView, alone_seconds: float, state: str, limits: HandoverLimits) -> str:
    """Return what ends a hand-over at its source that goes nowhere, a verb of the data plane; '' while it goes on.

    `alone_seconds`: since its destination was there last. `state`: of the consumer; one that is not ENDING may be a
    guest that Nova has not heard of yet.
    """
    if seen.connected:
        return ""
    if seen.state == "offered" and alone_seconds > limits.arrival_seconds:
        return "withdraw"
    if seen.state == "switched" and state == State.ENDING and alone_seconds > limits.abandoned_seconds:
        return "forget"
    return ""


class Handovers:
    """Of guests that this agent has had extended. The caller orders calls of one consumer."""

    def __init__(
        self,
        consumers: Consumers,
        plane: Callable[[], DataPlane],
        find: FindMemory,
        limits: HandoverLimits,
        mirror_mib: int,
        *,
        pager: PagerSettings = DEFAULT_PAGER,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`plane` may raise HostUnusable. `mirror_mib`: room for all mirrors; `pager`: of guests that come."""
        self._consumers, self._plane, self._find = consumers, plane, find
        self.limits, self._mirror_mib, self._pager = limits, mirror_mib, pager
        self._sleep, self._clock = sleep, clock
        self._alone_since: dict[str, float] = {}

    # At the source

    def offer(self, mine: Consumer, key: str) -> HandoverView:
        """Offer a guest; the view says where its pages are fetched. Raises Conflict, HostUnusable, Unavailable."""
        guest, extension = mine.consumer_uuid, mine.extension
        if not self.limits.address:
            raise HostUnusable(
                "no guest with remote memory leaves this host while it runs: set [data_plane] handover_address in its "
                "agent's file"
            )
        if extension is None or extension.homing or extension.incoming:
            raise Conflict(f"guest {guest} is not served, or is on its way here or home; look at get_remote")
        if not self._find(guest, pid=extension.pid).is_file:
            raise Conflict(
                f"guest {guest} was started by a former release, and QEMU would copy all of its memory; hard reboot it"
            )
        self._end_unanswered(mine)
        deadline_ms = int(self.limits.silence_seconds * 1000)
        self._alone_since[guest] = self._clock()
        seen = self._plane().hand_over(guest, self.limits.address, key, deadline_ms)
        if seen.handover is None:
            raise Unavailable(f"the data plane does not offer guest {guest}: {seen.problem}")
        if not seen.handover.kept:
            self._plane().withdraw(guest)
            raise Conflict("the data plane is of a former release; restart pondstack-data-plane.service")
        return seen.handover

    def _end_unanswered(self, mine: Consumer) -> None:
        """End an earlier offer that nobody came for; a request that was long on its way must not end a later one."""
        seen = self._plane().view(mine.consumer_uuid)
        if seen is None or seen.handover is None:
            return
        if seen.handover.connected or seen.handover.state != "offered":
            raise Conflict(f"guest {mine.consumer_uuid} is being handed over already; call take_back first")
        self.take_back(mine)

    def take_back(self, mine: Consumer) -> bool:
        """Have a guest that was offered go on here; False when it was not offered. Raises Conflict, Unavailable."""
        ends, offered = self._clock() + _BACK_SECONDS, False
        while (seen := self._plane().view(mine.consumer_uuid)) is not None and seen.handover is not None:
            if seen.handover.is_switched:
                raise Conflict(f"guest {mine.consumer_uuid} runs on another host, which fetches its pages from here")
            if mine.extension is not None and mine.extension.incoming:
                return False
            if self._clock() > ends:
                raise Unavailable(f"guest {mine.consumer_uuid} is still offered to another host; call again")
            self._plane().withdraw(mine.consumer_uuid)  # again, should a data plane have died meanwhile
            offered = True
            self._sleep(_PAUSE_SECONDS)
        return offered

    def tend(self, mine: Consumer, seen: GuestView) -> None:
        """End a hand-over that goes nowhere."""
        guest, going = mine.consumer_uuid, seen.handover
        if going is None or going.connected:
            self._alone_since.pop(guest, None)
            return
        alone = self._clock() - self._alone_since.setdefault(guest, self._clock())
        verb = abandoned(going, alone, mine.state, self.limits)
        if verb == "withdraw":
            LOG.warning("Guest %s stays here: nobody has come for it for %d s", guest, alone)
            self._plane().withdraw(guest)
        elif verb == "forget":
            LOG.warning("The pages of guest %s are given up: its host has not fetched them for %d s", guest, alone)
            self._plane().forget(guest)

    # At the destination

    def receive(self, mine: Consumer, memory_mib: int, local_mib: int, origin: Origin, pid: int) -> Consumer:
        """Attach a guest's new process, as soon as that has its memory: before QEMU may take the migration in.

        Raises Conflict where it is another process, or one that QEMU's migration would copy; DataPlaneRefused.
        """
        guest, ends = mine.consumer_uuid, self._clock() + _MEMORY_SECONDS
        found = self._process(guest, pid, ends)
        if found.size_mib != memory_mib:
            raise Conflict(f"the local node of guest {guest} has {found.size_mib} MiB, not {memory_mib}")
        wanted = Extension(pid, found.started, found.memory, memory_mib, local_mib, incoming=True)
        mine = self._consumers.extend(mine, wanted, self._mirror_mib)
        while True:
            try:
                self._plane().attach(guest, pid, found.memory, mine.mirror, local_mib, self._pager, origin)
            except DataPlaneRefused as error:
                if self._clock() > ends or not any(text in error.message for text in _STARTS):
                    raise
                self._sleep(_RETRY_SECONDS)
            else:
                return mine

    def _process(self, guest: str, pid: int, ends: float) -> GuestMemory:
        """Return the memory of a guest's process, once that is QEMU: before, it is pondstack-qemu."""
        while self._clock() < ends:
            try:
                found = self._find(guest, pid=pid)
            except PondError:
                found = None
            if found is not None and found.is_file:
                return found
            self._sleep(_RETRY_SECONDS)
        raise Conflict(f"process {pid} is not that of guest {guest}, or QEMU would copy all of its memory")
