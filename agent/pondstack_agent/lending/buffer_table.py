"""The book of a lender's process: buffers, their regions and keys, over any transport. One thread calls it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pondstack.domain.errors import Conflict, InUse, NotFound
from pondstack.domain.units import MIB
from pondstack_agent.lending.model import Buffer
from pondstack_rdma.base import Lender
from pondstack_rdma.errors import RevokeFailed
from pondstack_rdma.model import Key, Region

LOG = logging.getLogger(__name__)


@dataclass
class _Entry:
    """`generation`: of its newest key. `ended`: keys up to this one are dead for good, made or not.

    `failed`: why the device did not end its key when it was revoked.
    """

    region: Region
    key: Key | None = None
    generation: int = 0
    ended: int = 0
    backed: bool = True
    failed: str = ""


class BufferTable:
    """Numbers buffers from 0; a number that was withdrawn does not come again."""

    def __init__(self, lender: Lender, buffer_mib: int) -> None:
        self._lender = lender
        self._size = buffer_mib * MIB
        self._entries: dict[int, _Entry] = {}
        self._next = 0

    def register(self) -> int:
        """Take memory of the host for one more buffer; raises RegistrationFailed."""
        self._entries[self._next] = _Entry(self._lender.register(self._size))
        self._next += 1
        return self._next - 1

    def export(
        self, indexes: Sequence[int], borrower: str, generations: Mapping[int, int] | None = None
    ) -> dict[str, Any]:
        """Give a borrower keys of buffers, all or none: those that live, or new ones.

        `generations`: of these keys, by index; one that was promised to the borrower becomes of it. Answers {"ticket",
        "keys": {index: key}} as JSON carries it. Raises NotFound, InUse, RegistrationFailed, Conflict when it is late.
        """
        wanted = {index: self._next_generation(index, borrower, generations) for index in indexes}
        made: list[_Entry] = []
        try:
            for entry in (self._entries[index] for index in wanted):
                if entry.key is None:
                    entry.key = self._lender.export(entry.region, borrower)
                    entry.backed = True
                    made.append(entry)
        except BaseException:
            for entry in made:
                self._try_to_end(entry)
            raise
        for index, generation in wanted.items():
            self._entries[index].generation = generation
        keys = {str(index): self._key(index).to_dict() for index in indexes}
        return {"ticket": self._lender.admit(borrower).to_dict(), "keys": keys}

    def revoke(self, indexes: Sequence[int], generations: Mapping[int, int] | None = None) -> list[int]:
        """End the keys of buffers, and with them their content (US_reclaim, Zombieland 4.3).

        Of `generations` up to these, by index; without, whatever they are. Returns which buffers have no key now: one
        whose key the device did not end is not among them, and is tried again by the next call.
        """
        dead = []
        for index in indexes:
            entry = self._entries.get(index)
            if entry is not None:
                last = entry.generation if generations is None else generations.get(index, entry.generation)
                entry.ended = max(entry.ended, last)
                if entry.generation <= last:
                    self._try_to_end(entry)
            if entry is None or entry.key is None:
                dead.append(index)
        return dead

    def withdraw(self, indexes: Sequence[int]) -> list[int]:
        """Give the memory of buffers back to the host; all are gone then. Raises InUse, with nothing changed."""
        if live := [index for index in indexes if index in self._entries and self._entries[index].key is not None]:
            raise InUse(f"the keys of the buffers {live[:20]} live; revoke them first")
        for index in indexes:
            entry = self._entries.get(index)
            if entry is not None:
                self._lender.deregister(entry.region)
                del self._entries[index]
        return list(indexes)

    def buffers(self) -> tuple[Buffer, ...]:
        """Return all, by their numbers."""
        return tuple(
            Buffer(
                index,
                entry.key.borrower if entry.key else "",
                entry.generation,
                entry.backed,
                entry.region.locked,
                entry.failed,
            )
            for index, entry in sorted(self._entries.items())
        )

    def _entry(self, index: int) -> _Entry:
        entry = self._entries.get(index)
        if entry is None:
            raise NotFound(f"this lender has no buffer {index}; it was withdrawn, or is of another incarnation")
        return entry

    def _next_generation(self, index: int, borrower: str, generations: Mapping[int, int] | None) -> int:
        """Return of which generation a borrower's key is: the live one's, or a new one's; raises as export."""
        entry = self._entry(index)
        if entry.failed:
            raise InUse(f"buffer {index} is aside: {entry.failed}")
        live = entry.generation if entry.key is not None else 0
        if entry.key is not None and entry.key.borrower != borrower:
            raise InUse(f"buffer {index} has a live key of borrower {entry.key.borrower}; revoke it first")
        wanted = (generations or {}).get(index) or live or max(entry.generation, entry.ended) + 1
        if wanted < live or wanted <= entry.ended:
            newest = max(live, entry.ended)
            raise Conflict(
                f"a key of generation {wanted} of buffer {index} is asked for late: it has had {newest}; borrow again"
            )
        return wanted

    def _key(self, index: int) -> Key:
        key = self._entries[index].key
        assert key is not None
        return key

    def _try_to_end(self, entry: _Entry) -> None:
        try:
            self._end(entry)
        except RevokeFailed as error:
            LOG.error("%s", error)
            entry.failed = error.message

    def _end(self, entry: _Entry) -> None:
        """End an entry's key; raises RevokeFailed, and the key is its still.

        False from the lender is no success: the key of an entry lives until a revocation of it returned True.
        """
        if entry.key is not None:
            if not self._lender.revoke(entry.key):
                raise RevokeFailed(f"the lender does not know key {entry.key.number} of its own any more; restart it")
            entry.key, entry.backed, entry.failed = None, False, ""
