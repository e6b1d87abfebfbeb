"""Swap disks of instances: block devices of the host's data plane, as owner of what they borrow (Zombieland 4.4, 5.3).

A disk is on record before the data plane is asked for it. It is as large as its flavor says from the first moment, and
so is its mirror; how much of it lies with lenders as well grows and shrinks, which its guest sees as latency.
"""

import pwd
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oslo_log import log

from pondstack.domain.errors import BadRequest, Conflict, HostUnusable, InUse, PondError, Unavailable
from pondstack_agent.borrower.records import Held
from pondstack_agent.data_plane.blocks import BlockDevices
from pondstack_agent.data_plane.client import DataPlane
from pondstack_agent.data_plane.errors import DataPlaneGone
from pondstack_agent.data_plane.guest_memory import FindMemory
from pondstack_agent.data_plane.views import BlockState, BlockView
from pondstack_agent.remote.borrowed import Borrowed
from pondstack_agent.remote.leased import Leased, lease_counts
from pondstack_agent.remote.records import Consumer, Consumers, State

LOG = log.getLogger(__name__)


@dataclass(frozen=True)
class DiskPlace:
    """Where disks are served: `folder` of the data plane, and the name of the `user` that may open them: QEMU's."""

    folder: Path
    user: str
    leave_seconds: float = 30.0

    def socket(self, mine: Consumer) -> str:
        """Return the socket of a disk, the only one that the data plane makes for the agent."""
        return str(self.folder / f"{mine.consumer_uuid}.sock")


class SwapDisks:
    """Implements remote.owners.Owner for swap disks. The caller orders calls of one consumer.

    `data_plane` None: this host runs none. `find` raises Conflict when an instance has no process.
    """

    def __init__(
        self,
        consumers: Consumers,
        borrowed: Borrowed,
        data_plane: DataPlane | None,
        find: FindMemory,
        place: DiskPlace,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._consumers, self._maybe, self._find, self._place = consumers, data_plane, find, place
        self._leased = Leased(borrowed, self._blocks, self._links, place.leave_seconds, sleep=sleep, clock=clock)

    def make(self, mine: Consumer) -> None:
        """Have a disk served; raises Unavailable, HostUnusable. One whose pages are lost is made anew, empty.

        Not while its instance runs: what that has swapped out would become zeros.
        """
        blocks = self._blocks()
        seen = blocks.view(mine.consumer_uuid)
        if seen is not None and seen.state is BlockState.SERVING:
            return
        if mine.state != State.ASKING:
            self._check_stopped(mine, seen)
            LOG.warning("The swap disk of instance %s is made anew, and is empty", mine.instance_uuid)
        if seen is not None:
            blocks.unexport(mine.consumer_uuid)
        blocks.export(mine.consumer_uuid, mine.mib, mine.mirror, self._place.socket(mine), self._user())

    def check_unused(self, mine: Consumer) -> None:
        """Raise Conflict while somebody has a disk open; Unavailable while nobody knows."""
        seen = self._seen(mine)
        if seen is not None and seen.connected:
            raise Conflict(f"the swap disk of instance {mine.instance_uuid} is open; stop the instance first")

    def check_abandoned(self, mine: Consumer) -> None:
        """Raise InUse while its instance runs or somebody has a disk open; Unavailable while nobody knows."""
        try:
            self.check_unused(mine)
        except Conflict as error:
            raise InUse(error.message) from error
        if self._has_process(mine):
            raise InUse(f"instance {mine.instance_uuid} runs, and may use its swap disk")

    def remove(self, mine: Consumer) -> None:
        """End a disk, and forget its pages: from then on it uses no buffers. Raises Unavailable."""
        if self._maybe is not None:
            self._maybe.blocks.unexport(mine.consumer_uuid)
        self._leased.forget(mine)

    def keep(self, mine: Consumer) -> dict[str, list[int]]:
        """Have a disk use all that was borrowed for it; returns what lenders have lost. Raises Unavailable."""
        seen = self._blocks().view(mine.consumer_uuid)
        if seen is None or seen.state is not BlockState.SERVING:
            raise Unavailable(_trouble(mine, seen))
        return self._leased.compare(mine)

    def view(self, mine: Consumer) -> dict[str, Any]:
        """Return where a disk is served, and what the data plane tells of it."""
        problem, seen = "", None
        try:
            seen = self._seen(mine)
        except PondError as error:
            problem = error.message
        return {"socket": self._place.socket(mine), "disk": _view(seen, problem)}

    def arrived(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Have buffers used; if the data plane does not answer, `keep` comes to it."""
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is not None and mine.state != State.ENDING:
            self._leased.arrived(mine, held, indexes)

    def leave(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Have buffers not used any more, and wait for that. Raises Unavailable: they are."""
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is not None and self._maybe is not None:
            self._leased.leave(mine, held, indexes)

    def lost(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Have dead keys not used any more: the mirror serves until newer ones arrive."""
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is not None:
            self._leased.lost(mine, held, indexes)

    def _blocks(self) -> BlockDevices:
        if self._maybe is None:
            raise HostUnusable(
                "this host runs no data plane, which swap disks need; start pondstack-data-plane, and set [data_plane] "
                "folder in its agent's file"
            )
        return self._maybe.blocks

    def _links(self) -> list[str]:
        return self._maybe.links() if self._maybe is not None else []

    def _seen(self, mine: Consumer) -> BlockView | None:
        """Return what the data plane says of a disk; None: it is not served, nor does any data plane run."""
        try:
            return self._blocks().view(mine.consumer_uuid)
        except (DataPlaneGone, HostUnusable):
            return None

    def _check_stopped(self, mine: Consumer, seen: BlockView | None) -> None:
        if self._has_process(mine):
            raise Unavailable(_trouble(mine, seen))

    def _has_process(self, mine: Consumer) -> bool:
        try:
            self._find(mine.instance_uuid)
        except Conflict:
            return False
        except BadRequest:  # it runs, and its memory is not for the data plane
            pass
        return True

    def _user(self) -> int:
        try:
            return pwd.getpwnam(self._place.user).pw_uid
        except KeyError:
            raise HostUnusable(
                f"[data_plane] disk_user = {self._place.user} is no user of this host; name the one that QEMU runs as"
            ) from None


def _trouble(mine: Consumer, seen: BlockView | None) -> str:
    what = f"is not served: {seen.problem}" if seen is not None else "is not there any more"
    return (
        f"the swap disk of instance {mine.instance_uuid} {what}. If its pages are lost, the next start of the instance "
        "makes it anew, empty"
    )


def _view(seen: BlockView | None, problem: str) -> dict[str, Any]:
    return {
        "state": str(seen.state) if seen else "waiting",
        "problem": problem or (seen.problem if seen else ""),
        "connected": seen.connected if seen else 0,
        "leases": lease_counts(seen.leases) if seen else {},
        "counters": dict(seen.counters or {}) if seen else {},
        "store": dict(seen.store or {}) if seen else {},
    }
