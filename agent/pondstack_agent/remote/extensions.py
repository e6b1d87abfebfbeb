"""RAM extension: instances whose process the host's data plane serves, as owner of what they borrow (Zombieland 4.5).

What is to be served is on record before the data plane is asked. `keep` compares the record with what the data plane
says, and so goes on after the death of the agent, of the data plane, or of both.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from oslo_log import log

from pondstack.domain.errors import BadRequest, Conflict, HostUnusable, PondError, Unavailable
from pondstack.domain.units import MIB
from pondstack_agent.borrower.records import Held
from pondstack_agent.data_plane.client import DataPlane
from pondstack_agent.data_plane.denials import Denials, nothing_denied
from pondstack_agent.data_plane.errors import AttachDenied, DataPlaneGone, DataPlaneRefused
from pondstack_agent.data_plane.guest_memory import FindMemory, ProcessStarted, start_of
from pondstack_agent.data_plane.pager_settings import DEFAULT_PAGER, PagerSettings
from pondstack_agent.data_plane.views import PAGE_BYTES, GuestState, GuestView
from pondstack_agent.remote.borrowed import Borrowed
from pondstack_agent.remote.handovers import NO_HANDOVER, HandoverLimits, Handovers
from pondstack_agent.remote.leased import PAUSE_SECONDS, Leased, lease_counts
from pondstack_agent.remote.records import Consumer, Consumers, Extension, State
from pondstack_agent.remote.stranded import StrandedGuests

LOG = log.getLogger(__name__)

_END_SECONDS = 5.0
"""How long the data plane may take to notice the end of a guest, which it looks for twice a second."""


@dataclass(frozen=True)
class ExtensionLimits:
    """Of one host. `mirror_mib`: of all mirrors; seconds: of waits for pages; `pager`: of guests to come."""

    mirror_mib: int = 65536
    leave_seconds: float = 30.0
    home_seconds: float = 40.0
    pager: PagerSettings = DEFAULT_PAGER


class Extensions:
    """Implements remote.owners.Owner for instances. The caller orders calls of one consumer.

    `data_plane` None: this host runs none. `denials`: what would deny it a guest.
    """

    def __init__(
        self,
        consumers: Consumers,
        borrowed: Borrowed,
        data_plane: DataPlane | None,
        find: FindMemory,
        limits: ExtensionLimits,
        *,
        handover: HandoverLimits = NO_HANDOVER,
        started: ProcessStarted = start_of,
        denials: Denials = nothing_denied,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._consumers, self._maybe, self._find = consumers, data_plane, find
        self._limits, self._started, self._sleep, self._clock = limits, started, sleep, clock
        self._denials = denials
        self.handovers = Handovers(
            consumers,
            self._plane,
            find,
            handover,
            limits.mirror_mib,
            pager=limits.pager,
            sleep=sleep,
            clock=clock,
        )
        self.stranded = StrandedGuests(handover, clock=clock)
        self._leased = Leased(
            borrowed, self._plane, lambda: self._plane().links(), limits.leave_seconds, sleep=sleep, clock=clock
        )

    # What nova-compute asks for

    def extend(self, mine: Consumer, memory_mib: int, local_mib: int, disk_mib: int = 0) -> Consumer:
        """Have a guest's process served; idempotent, and changes the limit of one that is.

        `disk_mib`: of what leaves, so much is in the mirror alone: which pages, the data plane decides. Raises Conflict
        (no process, other than what runs, being brought home), BadRequest, Unavailable: call again.
        """
        if not 0 < local_mib < memory_mib or not 0 <= memory_mib - local_mib - disk_mib <= mine.mib or disk_mib < 0:
            raise BadRequest(
                f"of {memory_mib} MiB, {local_mib} MiB are to stay and {disk_mib} MiB are for the disk alone: that is "
                f"none of it, all of it, or more leaves than the {mine.mib} MiB that were borrowed"
            )
        found = self._find(mine.consumer_uuid)
        if found.size_mib != memory_mib:
            raise Conflict(f"the local node of guest {mine.consumer_uuid} has {found.size_mib} MiB, not {memory_mib}")
        wanted = Extension(found.pid, found.started, found.memory, memory_mib, local_mib)
        before = mine.extension
        if before is not None and before.homing and before.pid == wanted.pid and before.started == wanted.started:
            raise Conflict(f"the pages of guest {mine.consumer_uuid} are on their way home; wait for the end of that")
        mine = self._consumers.extend(mine, wanted, self._limits.mirror_mib)
        try:
            self._serve(mine, wanted, self._clock() + _END_SECONDS)
        except DataPlaneRefused:
            if self._seen(mine) is None:
                self._consumers.put(mine, extension=None)
            raise
        self.use(mine)
        return mine

    def use(self, mine: Consumer) -> None:
        """Have the data plane use what a guest has borrowed; what it cannot use now, `keep` comes to."""
        try:
            self._leased.compare(mine)
        except PondError as error:  # the mirror has all pages meanwhile, or another host
            LOG.info("Guest %s uses its lenders later: %s", mine.consumer_uuid, error)

    def unextend(self, mine: Consumer) -> Consumer:
        """Bring all pages home; the guest is an ordinary process then. Raises Unavailable: call again."""
        if mine.extension is None:
            return mine
        mine = self._consumers.put(mine, extension=replace(mine.extension, homing=True))
        ends = self._clock() + self._limits.home_seconds
        while (mine := self._bring_home(mine)).extension is not None:
            if self._clock() > ends:
                raise Unavailable(
                    f"pages of guest {mine.consumer_uuid} are still on their way home; see `view` of the data plane"
                )
            self._sleep(PAUSE_SECONDS)
        return mine

    def touched_bytes(self, mine: Consumer) -> int | None:
        """Return what of a process's memory is resident or evicted, in bytes; None when it is not to be served.

        Raises Unavailable while it is not served, though it is to be.
        """
        if mine.extension is None or not self._lives(mine.extension):
            return None
        seen = self._seen(mine)
        if seen is None or seen.resident_pages is None or seen.evicted_pages is None:
            raise Unavailable(f"the data plane does not serve guest {mine.consumer_uuid}")
        return (seen.resident_pages + seen.evicted_pages) * PAGE_BYTES

    def mirror_room(self) -> dict[str, int]:
        """Return {"total_mib", "used_mib"} of mirrors; nothing where no data plane is."""
        if self._maybe is None:
            return {"total_mib": 0, "used_mib": 0}
        return {"total_mib": self._limits.mirror_mib, "used_mib": self._consumers.mirrored_mib()}

    # As owner of what instances borrow

    def make(self, mine: Consumer) -> None:
        """Raise HostUnusable where no data plane is, or may attach: nothing could use what is borrowed."""
        del mine
        self._plane()
        if denied := self._denials(None):
            raise HostUnusable(f"no guest of this host can have remote memory: {'; '.join(denied)}")

    def remove(self, mine: Consumer) -> None:
        """See that nothing uses a consumer's buffers; raises Conflict while its process is served, Unavailable."""
        self.check_unserved(mine)
        if mine.extension is None:
            return
        ends = self._clock() + _END_SECONDS
        while (seen := self._seen(mine)) is not None:
            if seen.handover is not None:
                self.handovers.tend(mine, seen)
                raise Unavailable(f"another host still fetches pages of guest {mine.consumer_uuid}, which left")
            if self._clock() > ends:
                raise Unavailable(f"the data plane has not noticed the end of guest {mine.consumer_uuid} yet")
            self._sleep(PAUSE_SECONDS)
        self._consumers.put(mine, extension=None)
        self._leased.forget(mine)

    def check_unserved(self, mine: Consumer) -> None:
        """Raise Conflict while the process of a consumer is to be served."""
        if mine.extension is not None and self._lives(mine.extension):
            raise Conflict(
                f"guest {mine.consumer_uuid} runs on its remote memory; stop it, or bring its pages home first"
            )

    def keep(self, mine: Consumer) -> dict[str, list[int]]:
        """Have the data plane do what is on record; returns what lenders have lost, by lender's name."""
        extension = mine.extension
        if extension is None:
            return {}
        if not self._lives(extension):
            self._moving(mine, extension)
            self.stranded.look(mine.consumer_uuid, None)
            if self._seen(mine) is None:
                self._consumers.put(mine, extension=None)
            return {}
        if extension.homing:
            self._bring_home(mine)
            return {}
        mine = self._moving(mine, extension)
        self._serve(mine, mine.extension or extension, self._clock())
        return self._leased.compare(mine)

    def view(self, mine: Consumer) -> dict[str, Any]:
        """Return what the data plane does for a consumer."""
        if mine.extension is None:
            return {"extension": None}
        try:
            return {"extension": _view(mine.extension, self._seen(mine), self.stranded.problem(mine.consumer_uuid))}
        except PondError as error:
            return {"extension": _view(mine.extension, None, error.message)}

    def arrived(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Have buffers used; if the data plane does not answer, `keep` comes to it."""
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is None or mine.extension is None or mine.extension.homing or mine.state == State.ENDING:
            return
        self._leased.arrived(mine, held, indexes)

    def leave(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Have buffers not used any more, and wait for that. Raises Unavailable: they are."""
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is not None and mine.extension is not None:
            self._leased.leave(mine, held, indexes)

    def lost(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Have dead keys not used any more: the mirror serves until newer ones arrive."""
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is not None and mine.extension is not None:
            self._leased.lost(mine, held, indexes)

    # What the data plane is asked

    def _plane(self) -> DataPlane:
        if self._maybe is None:
            raise HostUnusable(
                "this host runs no data plane, which guests with remote memory need; start pondstack-data-plane, and "
                "set [data_plane] folder in its agent's file"
            )
        return self._maybe

    def _seen(self, mine: Consumer) -> GuestView | None:
        """Return what the data plane says of a consumer's process; None: nobody serves it, nor any data plane runs."""
        try:
            return self._plane().view(mine.consumer_uuid)
        except (DataPlaneGone, HostUnusable):  # none runs, or this host is to have none any more
            if mine.extension is not None and self._lives(mine.extension):
                raise
            return None

    def _lives(self, extension: Extension) -> bool:
        return self._started(extension.pid) == extension.started

    def _serve(self, mine: Consumer, wanted: Extension, ends: float) -> None:
        """Have a process served as is on record; waits until the end of a former one is noticed."""
        plane, guest = self._plane(), mine.consumer_uuid
        while (seen := plane.view(guest)) is not None and (seen.pid, seen.started) != (wanted.pid, wanted.started):
            if self._clock() >= ends:
                raise Unavailable(f"the data plane still has a former process of guest {guest}, {seen.pid}")
            self._sleep(PAUSE_SECONDS)
        if seen is None and wanted.incoming:
            raise Conflict(
                f"guest {guest} came from another host, and the data plane does not know it: its memory is not here"
            )
        if seen is None:
            if denied := self._denials(wanted.pid):
                raise AttachDenied(f"guest {guest} cannot have remote memory: {'; '.join(denied)}")
            pager = self._limits.pager
            seen = plane.attach(guest, wanted.pid, wanted.memory, mine.mirror, wanted.local_mib, pager)
        if seen.state is GuestState.DETACHING:
            raise Unavailable(f"the pages of guest {guest} are on their way home by somebody else's order")
        if seen.state is GuestState.FAILED:
            raise Unavailable(f"the data plane does not serve guest {guest}, and tries again: {seen.problem}")
        if seen.limit_mib != wanted.local_mib:
            plane.limit(guest, wanted.local_mib)

    def _moving(self, mine: Consumer, extension: Extension) -> Consumer:
        """Look after a guest that is on its way from or to another host; the consumer as it is then."""
        seen = self._seen(mine)
        if seen is not None and extension.incoming and seen.handover is None and seen.state is GuestState.SERVING:
            self.stranded.look(mine.consumer_uuid, None)
            LOG.info("Guest %s has come: %s", mine.consumer_uuid, told_of_a_move(seen.store or {}))
            return self._consumers.put(mine, extension=replace(extension, incoming=False))
        if seen is not None and extension.incoming:
            self.stranded.look(mine.consumer_uuid, seen.handover)
        elif seen is not None:
            self.handovers.tend(mine, seen)
        return mine

    def _bring_home(self, mine: Consumer) -> Consumer:
        """Go on with it; the consumer as it is then, without an extension when all is home."""
        seen = self._seen(mine)
        if seen is None:
            self._leased.forget(mine)
            return self._consumers.put(mine, extension=None)
        if seen.state is not GuestState.DETACHING:
            self._plane().detach(mine.consumer_uuid)
        return mine


def told_of_a_move(store: Mapping[str, float]) -> str:
    """Return how much of a guest was copied, and how much has stayed with lenders, by the data plane's counters."""
    names = ("copied_resident", "copied_stored", "handed_copied", "handed")
    resident, stored, lent, handed = (store.get(name, 0) * PAGE_BYTES / MIB for name in names)
    return (
        f"{resident + stored:.1f} MiB were copied from its source, of which lenders had {lent:.1f} MiB; "
        f"{handed:.1f} MiB have stayed with lenders"
    )


def _view(extension: Extension, seen: GuestView | None, problem: str) -> dict[str, Any]:
    state = "homing" if extension.homing else str(seen.state) if seen else "waiting"
    return {
        "memory_mib": extension.memory_mib,
        "local_mib": extension.local_mib,
        "state": state,
        "problem": problem or (seen.problem if seen else ""),
        "limit_mib": seen.limit_mib if seen else None,
        "resident_mib": seen.resident_mib if seen else None,
        "evicted_mib": seen.evicted_mib if seen else None,
        "leases": lease_counts(seen.leases) if seen else {},
        "counters": dict(seen.counters or {}) if seen else {},
        "store": dict(seen.store or {}) if seen else {},
        "handover": asdict(seen.handover) if seen and seen.handover else None,
    }
