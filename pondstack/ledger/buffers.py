"""What the ledger writes of memory that hosts lend (Zombieland, section 4). Part of pondstack.ledger.ledger.Ledger.

The paper's calls are named in brackets. Buffers go through the states of slices; nothing is handed on before its
borrower has let go of it and its lender has said that the borrower's key is dead and the memory fresh.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple, TypeVar
from uuid import NAMESPACE_OID, uuid4, uuid5

from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.db.store.journal import fingerprint
from pondstack.domain import buffer_choice
from pondstack.domain.causes import Cause
from pondstack.domain.errors import BadRequest, Conflict, IllegalTransition, NotFound
from pondstack.domain.lending import Buffer, Lender, LenderKind, RemoteAllocation
from pondstack.domain.requests import BorrowRequest
from pondstack.domain.states import OWNED, SliceEvent, SliceState
from pondstack.domain.transitions import LET_GO
from pondstack.ledger.buffer_moves import BUFFER_MOVES
from pondstack.ledger.buffer_terms import buffers_for, given, present, withdrawable
from pondstack.ledger.slice_moves import MOVES
from pondstack.ledger.store import Moves, Tables

T = TypeVar("T")


class Delegated(NamedTuple):
    """How many buffers are new, and how many that somebody had are gone."""

    new: int
    lost: int


class Lending:
    """Methods of the Ledger."""

    database: Database
    epoch: int
    _down: float
    _tables: Tables

    def _once(
        self, operation_id: str, kind: str, arguments: dict[str, Any], work: Callable[[Session], dict[str, Any]]
    ) -> dict[str, Any]:
        raise NotImplementedError

    def _write(self, work: Callable[[Session], T]) -> T:
        raise NotImplementedError

    def buffers(self, lender: str | None = None) -> list[Buffer]:
        """Return the buffers of a lender, or all, by lender and index."""
        tables = self._tables.buffers
        return self.database.read(
            lambda session: tables.everything(session) if lender is None else tables.of_lender(session, lender)
        )

    def remote_allocations(self) -> list[RemoteAllocation]:
        """Return all allocations of lent memory, by UUID."""
        return self.database.read(self._tables.buffers.allocations)

    def borrowers(self) -> list[str]:
        """Return the hosts that take part, by name: they say what they borrow, are heard of, and may have memory."""
        return self.database.read(lambda session: self._tables.buffers.borrowers(session, self._down))

    # Lenders

    def delegate(self, lender: Lender, sequence: int, offsets_mib: Mapping[int, int]) -> Delegated:
        """Write down all that a host lends, by index (GS_goto_zombie, before it sleeps): what is not told is not lent.

        A lower `sequence` than before is late and changes nothing. What was lent and is lent no more, as everything of
        a former incarnation, is forgotten; what of that has an owner is set aside until he has let go of it. An
        incarnation '' lends nothing. Raises BadRequest for buffers of two sizes, HostUnusable.
        """

        def work(session: Session) -> Delegated:
            buffers = self._tables.buffers
            known = buffers.lender(session, lender.host)
            if known is not None and known.sequence > sequence:
                return Delegated(0, 0)
            if offsets_mib:
                self._tables.pools.check_host(session, lender.host)
            mine = buffers.of_lender(session, lender.host)
            there = {item.index: item for item in mine if item.incarnation == lender.incarnation}
            gone = [item for item in mine if there.get(item.index) != item or item.index not in offsets_mib]
            lost = self._lose(session, gone)
            if {item.size_mib for item in mine if item not in gone} - {lender.buffer_mib}:
                raise BadRequest(
                    f"host {lender.host} offers buffers of {lender.buffer_mib} MiB and has lent some of another size; "
                    "give [lending] buffer_mib one value in the rack"
                )
            # Kept when nothing is lent any more, too: a late word must find that it is late.
            size = lender.buffer_mib or (known.buffer_mib if known else 0)
            buffers.put_lender(session, replace(lender, sequence=sequence, buffer_mib=size))
            new = [
                Buffer(lender.host, lender.incarnation, index, offset, lender.buffer_mib, lender.kind)
                for index, offset in sorted(offsets_mib.items())
                if index not in there
            ]
            buffers.add(session, new)
            return Delegated(len(new), lost)

        return self._write(work)

    def next_generation(self, host: str, incarnation: str, indexes: Iterable[int]) -> dict[int, int]:
        """Begin a generation of keys of free buffers, for a promise; returns it by index, of those that are free."""
        wanted = set(indexes)

        def work(session: Session) -> dict[int, int]:
            mine = [item for item in self._free_of(session, host, incarnation) if item.index in wanted]
            self._tables.buffers.renew(session, mine)
            return {item.index: item.generation + 1 for item in mine}

        return self._write(work)

    def promise(
        self,
        host: str,
        incarnation: str,
        promised: Mapping[int, str | None],
        generations: Mapping[int, int] | None = None,
    ) -> int:
        """Note for which host each of these buffers has its only key, None: for nobody; returns how many are noted.

        Of a buffer that somebody has got meanwhile, or whose keys are not of `generations` any more, nothing is noted.
        """

        def work(session: Session) -> int:
            by_borrower: dict[str | None, list[Buffer]] = {}
            for item in self._free_of(session, host, incarnation):
                same = generations is None or generations.get(item.index) == item.generation
                if item.index in promised and same:
                    by_borrower.setdefault(promised[item.index], []).append(item)
            for borrower, items in by_borrower.items():
                self._tables.buffers.mark(session, items, {"promised_to": borrower})
            return sum(map(len, by_borrower.values()))

        return self._write(work)

    def reclaim_buffers(self, operation_id: str, host: str, mib: int) -> list[int]:
        """A lender wants so much back (GS_reclaim): free buffers first; the rest is asked of their borrowers.

        None of them is given out from now on; what is ONLINE goes to RELEASING (US_reclaim). Returns those of them, by
        index, that nobody has at this moment: the lender may withdraw them. Raises NotFound.
        """

        def work(session: Session) -> dict[str, Any]:
            known = self._lender(session, host)
            count = -(-mib // known.buffer_mib)
            mine = present(self._tables.buffers.of_lender(session, host), known)
            chosen = buffer_choice.to_reclaim(mine, count, self._tables.buffers.unguaranteed(session))
            self._tables.buffers.mark(session, chosen, {"leaving": True})
            held = [item for item in chosen if item.state in (SliceState.ASSIGNING, SliceState.ONLINE)]
            moves = self._move_buffers(session, held, SliceEvent.RELEASE, reason=f"lender {host} wants it back")
            incarnation = known.incarnation
            chosen_indexes = [item.index for item in chosen]
            return {"incarnation": incarnation, "buffers": chosen_indexes, BUFFER_MOVES: moves, MOVES: []}

        effect = self._once(operation_id, "reclaim_buffers", {"host": host, "mib": mib}, work)
        chosen = {(effect["incarnation"], index) for index in effect["buffers"]}
        return [
            item.index for item in self.buffers(host) if (item.incarnation, item.index) in chosen and withdrawable(item)
        ]

    def freshened(self, host: str, incarnation: str, indexes: Iterable[int]) -> int:
        """SANITIZING becomes FREE: the lender has killed the borrower's key, and the memory is fresh.

        Returns how many.
        """
        wanted = set(indexes)

        def work(session: Session) -> dict[str, Any]:
            done = [
                item
                for item in self._tables.buffers.of_lender(session, host)
                if (item.incarnation, item.state) == (incarnation, SliceState.SANITIZING) and item.index in wanted
            ]
            moves = self._move_buffers(session, done, SliceEvent.SANITIZED)
            return {"buffers": [item.index for item in done], BUFFER_MOVES: moves, MOVES: []}

        return len(self._once(str(uuid4()), "freshened", {"host": host}, work)["buffers"])

    # Borrowers

    def borrow(self, operation_id: str, request: BorrowRequest, buffer_mib: int) -> dict[str, Any]:
        """Take free buffers of `buffer_mib` for a consumer (GS_alloc_ext when guaranteed, else GS_alloc_swap).

        Returns {"allocation_uuid", "buffers": [{"lender", "incarnation", "index", "offset_mib", "size_mib",
        "generation"}]}; no buffer at all when nothing is guaranteed and nothing is free: then there is no allocation.
        Raises BufferShortage, NotAligned, HostUnusable, OperationMismatch, and Conflict when the operation's
        allocation has been released since.
        """
        uuid = str(uuid5(NAMESPACE_OID, f"pondstack remote allocation {operation_id}"))

        def guarded(session: Session) -> dict[str, Any]:
            digest = fingerprint({**asdict(request), "buffer_mib": buffer_mib})
            effect = self._tables.journal.recall(session, operation_id, "borrow", digest)
            if effect is None:
                effect = self._borrow(session, operation_id, uuid, request, buffer_mib)
                self._tables.journal.record(session, operation_id, "borrow", digest, self.epoch, effect)
            elif effect["buffers"] and self._tables.buffers.allocation(session, uuid) is None:
                raise Conflict(f"the allocation of operation {operation_id} was released; make a new operation id")
            return effect

        return self._write(guarded)

    def _borrow(
        self, session: Session, operation_id: str, uuid: str, request: BorrowRequest, buffer_mib: int
    ) -> dict[str, Any]:
        tables = self._tables
        tables.pools.check_host(session, request.host)
        count = buffers_for(request.remote_mib, buffer_mib)
        free = [item for item in tables.buffers.free(session) if item.size_mib == buffer_mib]
        # A zombie's agent is silent because it sleeps.
        asleep = {item.lender for item in free if item.kind is LenderKind.ZOMBIE}
        down = tables.buffers.silent(session, self._down) - asleep
        chosen = buffer_choice.choose(
            buffer_choice.usable(free, request.host, down), count, guaranteed=request.guaranteed
        )
        if chosen:
            asked = {name: value for name, value in asdict(request).items() if not name.endswith("_mib")}
            tables.buffers.add_allocation(session, uuid, operation_id, asked)
        moves = self._move_buffers(session, chosen, SliceEvent.ASSIGN, host=request.host, allocation_uuid=uuid)
        return {"allocation_uuid": uuid, "buffers": [given(item) for item in chosen], BUFFER_MOVES: moves, MOVES: []}

    def acknowledge_borrowed(
        self, operation_id: str, allocation_uuid: str, host: str, opened: Sequence[tuple[str, int]] = ()
    ) -> None:
        """The borrower has opened the keys: ASSIGNING becomes ONLINE, all or none.

        `opened`: those it is going to use, (incarnation, index) each. Raises NotFound, Conflict when one of them is the
        allocation's no more, and IllegalTransition when a buffer is on its way back or lost.
        """

        def work(session: Session) -> dict[str, Any]:
            if not self._borrows(session, allocation_uuid, host):
                raise NotFound(f"there is no allocation {allocation_uuid}; it was released, borrow again")
            mine = self._tables.buffers.of_allocation(session, allocation_uuid)
            if gone := sorted(set(opened) - {(item.incarnation, item.index) for item in mine}):
                raise Conflict(
                    f"buffers {[index for _, index in gone]} were taken back from allocation {allocation_uuid} before "
                    "they were acknowledged; give the allocation back and borrow again"
                )
            waiting = [item for item in mine if item.state is not SliceState.ONLINE]
            if other := [item for item in waiting if item.state is not SliceState.ASSIGNING]:
                raise IllegalTransition(
                    f"{other[0].name} of allocation {allocation_uuid} is {other[0].state} ({other[0].reason}); "
                    "give the allocation back and borrow again"
                )
            moves = self._move_buffers(session, waiting, SliceEvent.ACKNOWLEDGE)
            return {"buffers": [item.index for item in waiting], BUFFER_MOVES: moves, MOVES: []}

        arguments = {"uuid": allocation_uuid, "host": host, "opened": [list(each) for each in opened]}
        self._once(operation_id, "acknowledge_borrowed", arguments, work)

    def release_abandoned(self, seconds: float) -> int:
        """ASSIGNING for longer than that becomes RELEASING: who borrowed it never acknowledged. Returns how many.

        No memory is handed on by it: its borrower is asked to let go, and its key dies, as of any other.
        """
        if not self.database.read(lambda session: self._tables.buffers.unacknowledged(session, seconds)):
            return 0

        why = f"it was not acknowledged within {seconds:g} s"
        return self._ask_back(lambda session: self._tables.buffers.unacknowledged(session, seconds), why)

    def release_unacknowledged(self, allocation_uuid: str, reason: str) -> int:
        """ASSIGNING of an allocation becomes RELEASING, as release_abandoned does; returns how many.

        What its borrower has acknowledged stays: another attempt of the same operation has answered it.
        """

        def waiting(session: Session) -> list[Buffer]:
            mine = self._tables.buffers.of_allocation(session, allocation_uuid)
            return [item for item in mine if item.state is SliceState.ASSIGNING]

        return self._ask_back(waiting, reason)

    def give_back(
        self,
        operation_id: str,
        allocation_uuid: str,
        host: str,
        only: Sequence[tuple[str, int]] | None = None,
    ) -> list[str]:
        """The borrower uses buffers no more, all of the allocation's or `only` these (incarnation, index).

        They go to SANITIZING, quarantined ones too; those whose lender lost them are forgotten. Returns the lenders
        that have to revoke keys. Raises Conflict when the allocation is another host's.
        """

        def work(session: Session) -> dict[str, Any]:
            self._borrows(session, allocation_uuid, host)
            mine = [
                item
                for item in self._tables.buffers.of_allocation(session, allocation_uuid)
                if item.host == host and (only is None or (item.incarnation, item.index) in set(only))
            ]
            lost = [item for item in mine if item.cause is Cause.LENDER_LOST]
            kept = [item for item in mine if item not in lost]
            moves: Moves = []
            for state in sorted({item.state for item in kept}):
                moves += self._move_buffers(session, [i for i in kept if i.state is state], *LET_GO[state])
            self._tables.buffers.remove(session, lost)
            self._tables.buffers.drop_empty(session, [allocation_uuid])
            lenders = sorted({item.lender for item in kept})
            return {"lenders": lenders, "lost": len(lost), BUFFER_MOVES: moves, MOVES: []}

        arguments = {"uuid": allocation_uuid, "host": host, "only": None if only is None else [list(i) for i in only]}
        return list(self._once(operation_id, "give_back", arguments, work)["lenders"])

    def taken(self, host: str, incarnation: str, indexes: Iterable[int]) -> int:
        """A lender has made the keys of a fenced borrower dead: its buffers are fresh, and free. Returns how many."""
        wanted = set(indexes)

        def work(session: Session) -> dict[str, Any]:
            done = [
                item
                for item in self._tables.buffers.of_lender(session, host)
                if item.incarnation == incarnation and item.index in wanted and is_fenced(item)
            ]
            moves = self._move_buffers(session, done, SliceEvent.AUDIT, SliceEvent.SANITIZED)
            self._tables.buffers.drop_empty(session, {item.allocation_uuid or "" for item in done})
            return {"buffers": [item.index for item in done], BUFFER_MOVES: moves, MOVES: []}

        return len(self._once(str(uuid4()), "taken", {"host": host}, work)["buffers"])

    def _fence_lent(self, session: Session, name: str, why: str) -> Moves:
        mine = [item for item in self._tables.buffers.of_borrower(session, name) if item.state in OWNED]
        moves = self._move_buffers(session, mine, SliceEvent.QUARANTINE, reason=why, cause=Cause.HOST_FENCED)
        self._lose(session, self._tables.buffers.of_lender(session, name))
        known = self._tables.buffers.lender(session, name)
        if known is not None:
            # Its last word may come once more: it is of before, and late from now on.
            gone = replace(known, incarnation="", sequence=known.sequence + 1)
            self._tables.buffers.put_lender(session, gone)
        return moves

    def _lose(self, session: Session, gone: Sequence[Buffer]) -> int:
        """Forget buffers whose memory is gone, or set them aside for their owners to let go; returns how many."""
        owned = [item for item in gone if item.state in OWNED]
        aside = [item for item in gone if item.state is SliceState.QUARANTINED and item.allocation_uuid]
        cause = Cause.LENDER_LOST
        why = {"reason": cause.reason("its lender does not have this memory any more"), "cause": cause}
        self._tables.buffers.remove(session, [item for item in gone if item not in owned and item not in aside])
        self._tables.buffers.mark(session, aside, why)
        moves = self._move_buffers(session, owned, SliceEvent.QUARANTINE, **why)
        if moves:
            effect = {BUFFER_MOVES: moves, MOVES: []}
            self._tables.journal.record(session, str(uuid4()), "lender_lost", fingerprint({}), self.epoch, effect)
        return len(owned)

    def _lender(self, session: Session, host: str) -> Lender:
        found = self._tables.buffers.lender(session, host)
        if found is None or not found.incarnation:
            raise NotFound(f"host {host} lends nothing; have it lend first: openstack memory host delegate {host}")
        return found

    def _ask_back(self, find: Callable[[Session], list[Buffer]], reason: str) -> int:
        def work(session: Session) -> dict[str, Any]:
            found = find(session)
            moves = self._move_buffers(session, found, SliceEvent.RELEASE, reason=reason)
            return {"buffers": [item.index for item in found], BUFFER_MOVES: moves, MOVES: []}

        return len(self._once(str(uuid4()), "ask_back", {"reason": reason}, work)["buffers"])

    def _free_of(self, session: Session, host: str, incarnation: str) -> list[Buffer]:
        mine = self._tables.buffers.of_lender(session, host)
        return [item for item in mine if item.incarnation == incarnation and item.state is SliceState.FREE]

    def _borrows(self, session: Session, uuid: str, host: str) -> bool:
        """Return whether there is such an allocation; raises Conflict when it is another host's."""
        found = self._tables.buffers.allocation(session, uuid)
        if found is not None and found.host != host:
            raise Conflict(f"allocation {uuid} belongs to host {found.host}, not to {host}")
        return found is not None

    def _move_buffers(self, session: Session, items: Sequence[Buffer], *events: SliceEvent, **target: Any) -> Moves:
        return self._tables.buffers.move(session, items, *events, epoch=self.epoch, **target)


def is_fenced(item: Buffer) -> bool:
    """Return whether a buffer is aside because its borrower was fenced."""
    return item.cause is Cause.HOST_FENCED
