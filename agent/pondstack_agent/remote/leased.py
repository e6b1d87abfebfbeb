"""Which keys of lenders the data plane uses for consumers, compared with what they have borrowed, and put right."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from oslo_log import log

from pondstack.domain.errors import PondError, Unavailable
from pondstack_agent.borrower.records import Held
from pondstack_agent.data_plane.errors import DataPlaneGone, DataPlaneRefused
from pondstack_agent.data_plane.views import LeaseView
from pondstack_agent.locks import NamedLocks
from pondstack_agent.remote.borrowed import Borrowed
from pondstack_agent.remote.leases import Difference, batches, compare
from pondstack_agent.remote.records import Consumer

LOG = log.getLogger(__name__)

PAUSE_SECONDS = 0.05


class View(Protocol):
    """What the data plane tells of a guest or a block device."""

    @property
    def leases(self) -> tuple[LeaseView, ...]:
        """The keys that it uses."""


class Lessee(Protocol):
    """The part of the data plane that leases are told to: for guests, or for block devices."""

    def lease(self, name: str, lender: str, ticket: Mapping[str, Any], keys: Sequence[Mapping[str, Any]], /) -> View:
        """Use keys of a lender."""

    def leave(self, name: str, lender: str, numbers: Sequence[int], /) -> View:
        """Stop using keys, in the background."""

    def view(self, name: str, /) -> View | None:
        """Return what it uses, None when it does not serve the consumer."""


class Leased:
    """Of consumers of one kind. `lessee` may raise HostUnusable: this host runs no data plane. `links`: the lenders to
    which the data plane keeps links.

    Lock: `_telling`, within Borrower's and the consumers', orders what is told of leases, so that one that is left is
    not told again.
    """

    def __init__(
        self,
        borrowed: Borrowed,
        lessee: Callable[[], Lessee],
        links: Callable[[], Sequence[str]],
        leave_seconds: float,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._borrowed, self._lessee, self._links, self._leave_seconds = borrowed, lessee, links, leave_seconds
        self._sleep, self._clock = sleep, clock
        self._telling = NamedLocks()
        self._refused: dict[str, dict[str, set[int]]] = {}

    def compare(self, mine: Consumer) -> dict[str, list[int]]:
        """Tell of leases that the data plane lacks, and of those that it has too many; returns what it lost.

        Also what it cannot have again: pages on it are in the mirror, and are to be placed anew.
        """
        name = mine.consumer_uuid
        with self._telling.holding(name):
            holds = {held.name: (held, indexes) for held, indexes in self._borrowed.of(mine)}
            found = self._difference(mine, holds)
            for lender, numbers in found.strange.items():
                self._lessee().leave(name, lender, numbers)
            lost = dict(found.lost)
            for lender, indexes in found.missing.items():
                held = holds[lender][0]
                try:
                    self._lease(mine, held, indexes)
                except DataPlaneRefused as error:
                    LOG.info("Lender %s gives consumer %s nothing now: %s", lender, name, error)
                    if gone := self._out_of_reach(held, indexes):
                        lost[lender] = sorted({*lost.get(lender, ()), *gone})
        return lost

    def arrived(self, mine: Consumer, held: Held, indexes: Sequence[int]) -> None:
        """Have buffers used; if the data plane does not answer, `compare` comes to it."""
        with self._telling.holding(mine.consumer_uuid):
            try:
                self._lease(mine, held, sorted(index for index in indexes if index in held.buffers))
            except PondError as error:
                LOG.info("Consumer %s uses what lender %s gave later: %s", mine.consumer_uuid, held.lender, error)

    def leave(self, mine: Consumer, held: Held, indexes: Sequence[int]) -> None:
        """Have buffers not used any more, and wait for that. Raises Unavailable: they are."""
        numbers = {held.buffers[index].key.number for index in indexes if index in held.buffers}
        ends = self._clock() + self._leave_seconds
        while left := self._leave(mine.consumer_uuid, held.name, numbers):
            if self._clock() > ends:
                raise Unavailable(f"{len(left)} buffers of lender {held.lender} are in use; see the mirror's disk")
            self._sleep(PAUSE_SECONDS)

    def lost(self, mine: Consumer, held: Held, indexes: Sequence[int]) -> None:
        """Have dead keys not used any more: the mirror serves until newer ones arrive."""
        numbers = {held.buffers[index].key.number for index in indexes if index in held.buffers}
        try:
            self._leave(mine.consumer_uuid, held.name, numbers)
        except PondError as error:
            LOG.debug("The data plane notices by itself that keys of lender %s are dead: %s", held.lender, error)

    def forget(self, mine: Consumer) -> None:
        """Forget what lenders refused a consumer that is not served any more."""
        self._refused.pop(mine.consumer_uuid, None)

    def _out_of_reach(self, held: Held, indexes: Sequence[int]) -> list[int]:
        """Return the buffers of a lender that sleeps, to which a data plane that ended had the only link."""
        if held.name in self._links():
            return []
        return [index for index in indexes if held.buffers[index].key.location is not None]

    def _difference(self, mine: Consumer, holds: dict[str, tuple[Held, list[int]]]) -> Difference:
        seen = self._lessee().view(mine.consumer_uuid)
        numbers = {
            name: {index: held.buffers[index].key.number for index in indexes}
            for name, (held, indexes) in holds.items()
        }
        return compare(numbers, seen.leases if seen else ())

    def _lease(self, mine: Consumer, held: Held, indexes: Sequence[int]) -> None:
        """Tell of buffers. What the lender refuses comes last the next time, so that it holds up no other."""
        refused = self._refused.setdefault(mine.consumer_uuid, {}).setdefault(held.name, set())
        for batch in batches(indexes, refused):
            keys = [_told(mine, held, index) for index in batch]
            try:
                self._lessee().lease(mine.consumer_uuid, held.name, held.ticket, keys)
            except DataPlaneRefused:
                seen = self._lessee().view(mine.consumer_uuid)
                used = {lease.number for lease in seen.leases if lease.lender == held.name} if seen else set()
                first = next((index for index in batch if held.buffers[index].key.number not in used), None)
                refused |= set() if first is None else {first}
                raise
            refused -= set(batch)

    def _leave(self, name: str, lender: str, numbers: set[int]) -> set[int]:
        """Have keys not used any more; returns those that are, yet."""
        try:
            with self._telling.holding(name):
                seen = self._lessee().view(name)
                used = {lease.number: lease for lease in seen.leases if lease.lender == lender} if seen else {}
                left = numbers & used.keys()
                if left:
                    self._lessee().leave(name, lender, sorted(left))
                return left
        except DataPlaneGone:
            return set()  # its next process is not told of them


def _told(mine: Consumer, held: Held, index: int) -> dict[str, Any]:
    """Return what the data plane is told of a buffer, with its name, the same on each host that has a key of it."""
    item = held.buffers[index]
    handed = {"handed": True} if mine.is_handed(item.allocation_uuid) else {}
    return {**item.key.to_dict(), "buffer": str(index), **handed}


def lease_counts(leases: Sequence[LeaseView]) -> dict[str, int]:
    """Count keys by their state."""
    found: dict[str, int] = {}
    for lease in leases:
        found[str(lease.state)] = found.get(str(lease.state), 0) + 1
    return found
