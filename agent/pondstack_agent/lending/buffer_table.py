"""The book of a lender's process: buffers, their regions and keys, over any transport. One thread calls it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
    """`keys`: those that live, by borrower: one, or several while in `escrow` or `shared`. `generation`: of the newest.

    `ended`: keys up to this generation are dead for good, made or not. `failed`: why the device did not end a key when
    it was revoked.
    """

    region: Region
    keys: dict[str, Key] = field(default_factory=dict)
    escrow: bool = False
    shared: bool = False
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

        `generations`: of these keys, by index; one that was in escrow for the borrower becomes of it, and those of
        others end. Those of a shared buffer end by a newer generation only: a call from before it was shared may come
        late. Answers {"ticket", "keys": {index: key}} as JSON carries it. Raises NotFound, InUse, RegistrationFailed,
        Conflict when it is late.
        """
        wanted = {index: self._next_generation(index, borrower, generations) for index in indexes}
        for entry, generation in ((self._entries[index], generation) for index, generation in wanted.items()):
            if entry.escrow or (entry.shared and generation > entry.generation):
                self._end_others(entry, borrower)
        self._make(wanted, borrower)
        return self._answer(indexes, borrower)

    def escrow(self, indexes: Sequence[int], borrower: str, generations: Mapping[int, int]) -> dict[str, Any]:
        """Make keys of buffers for one of several borrowers, all or none, none of whom has got its key yet.

        Those of one buffer are all of one generation. The keys say where their region is, since whoever gets one may
        find this host asleep. Answers and raises as `export`; InUse: it is somebody's.
        """
        wanted = {index: self._escrow_generation(index, generations) for index in indexes}
        self._make(wanted, borrower)
        for index in wanted:
            self._entries[index].escrow = True
        return self._answer(indexes, borrower, self._lender.locate)

    def share(self, indexes: Sequence[int], borrower: str, generations: Mapping[int, int]) -> dict[str, Any]:
        """Make keys more of buffers in use, all or none, for the host that their consumer moves to.

        Of the generations that live; `export` of a newer one to one of both ends the other's. Answers and raises as
        `escrow`; Conflict: such a key does not live (any more).
        """
        wanted = {index: self._shared_generation(index, generations) for index in indexes}
        self._make(wanted, borrower)
        for index in wanted:
            self._entries[index].shared = True
        return self._answer(indexes, borrower, self._lender.locate)

    def _make(self, wanted: Mapping[int, int], borrower: str) -> None:
        """Make the keys that a borrower has not got yet, of these generations, all or none."""
        made: list[_Entry] = []
        try:
            for entry in (self._entries[index] for index in wanted):
                if borrower not in entry.keys:
                    entry.keys[borrower] = self._lender.export(entry.region, borrower)
                    entry.backed = True
                    made.append(entry)
        except BaseException:
            for entry in made:
                self._try_to_end(entry, borrower)
            raise
        for index, generation in wanted.items():
            self._entries[index].generation = generation

    def _answer(
        self, indexes: Sequence[int], borrower: str, told: Callable[[Key], Key] = lambda key: key
    ) -> dict[str, Any]:
        keys = {str(index): told(self._entries[index].keys[borrower]).to_dict() for index in indexes}
        return {"ticket": self._lender.admit(borrower).to_dict(), "keys": keys}

    def keys(self, index: int) -> tuple[Key, ...]:
        """Return the live keys of a buffer."""
        return tuple(self._entries[index].keys.values())

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
                    self._try_to_end(entry, *entry.keys)
            if entry is None or not entry.keys:
                dead.append(index)
        return dead

    def withdraw(self, indexes: Sequence[int]) -> list[int]:
        """Give the memory of buffers back to the host; all are gone then. Raises InUse, with nothing changed."""
        if live := [index for index in indexes if index in self._entries and self._entries[index].keys]:
            raise InUse(f"the keys of the buffers {live[:20]} live; revoke them first")
        for index in indexes:
            entry = self._entries.get(index)
            if entry is not None:
                self._lender.deregister(entry.region)
                del self._entries[index]
        return list(indexes)

    def buffers(self) -> tuple[Buffer, ...]:
        """Return all, by their numbers; one whose keys are in escrow names the first of their borrowers."""
        return tuple(
            Buffer(
                index,
                min(entry.keys, default=""),
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
        live = entry.generation if entry.keys else 0
        if entry.keys and borrower not in entry.keys:
            raise InUse(f"buffer {index} has a live key of borrower {min(entry.keys)}; revoke it first")
        wanted = (generations or {}).get(index) or live or max(entry.generation, entry.ended) + 1
        if wanted < live or wanted <= entry.ended:
            newest = max(live, entry.ended)
            raise Conflict(
                f"a key of generation {wanted} of buffer {index} is asked for late: it has had {newest}; borrow again"
            )
        return wanted

    def _escrow_generation(self, index: int, generations: Mapping[int, int]) -> int:
        """Return of which generation a key in escrow is; raises as escrow."""
        entry, wanted = self._entry(index), generations.get(index, 0)
        if entry.failed:
            raise InUse(f"buffer {index} is aside: {entry.failed}")
        if entry.keys and not entry.escrow:
            raise InUse(f"buffer {index} has a live key of borrower {min(entry.keys)}, who uses it; revoke it first")
        if wanted <= entry.ended or (entry.keys and wanted != entry.generation):
            newest = max(entry.generation, entry.ended)
            raise Conflict(f"keys of generation {wanted} of buffer {index} are asked for late: it has had {newest}")
        return wanted

    def _shared_generation(self, index: int, generations: Mapping[int, int]) -> int:
        """Return the generation of the keys of a buffer in use; raises as share."""
        entry, wanted = self._entry(index), generations.get(index, 0)
        if entry.failed:
            raise InUse(f"buffer {index} is aside: {entry.failed}")
        if not entry.keys or wanted != entry.generation or wanted <= entry.ended:
            newest = entry.generation
            raise Conflict(f"no key of generation {wanted} of buffer {index} lives: its newest one is {newest}")
        return wanted

    def _end_others(self, entry: _Entry, owner: str) -> None:
        """End the keys of a buffer that are not its owner's; raises InUse where the device does not."""
        self._try_to_end(entry, *(entry.keys.keys() - {owner}))
        if entry.failed:
            raise InUse(f"a key of another borrower lives: {entry.failed}")
        entry.escrow = entry.shared = False

    def _try_to_end(self, entry: _Entry, *borrowers: str) -> None:
        for borrower in sorted(borrowers):
            try:
                self._end(entry, borrower)
            except RevokeFailed as error:
                LOG.error("%s", error)
                entry.failed = error.message

    def _end(self, entry: _Entry, borrower: str) -> None:
        """End a borrower's key of an entry; raises RevokeFailed, and it is the entry's still.

        False from the lender is no success: the key of an entry lives until a revocation of it returned True.
        """
        key = entry.keys[borrower]
        if not self._lender.revoke(key):
            raise RevokeFailed(f"the lender does not know key {key.number} of its own any more; restart it")
        del entry.keys[borrower]
        if not entry.keys:
            entry.backed, entry.escrow, entry.shared, entry.failed = False, False, False, ""
