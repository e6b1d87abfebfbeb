"""What the ledger writes of memory that hosts lend (Zombieland, section 4). Part of pondstack.db.ledger.Ledger.

The paper's calls are named in brackets. Buffers go through the states of slices; nothing is handed on before its
borrower has let go of it and its lender has said that the borrower's key is dead and the memory fresh.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar
from uuid import NAMESPACE_OID, uuid4, uuid5

from sqlalchemy.orm import Session

from pondstack.db.buffer_moves import BUFFER_MOVES
from pondstack.db.engine import Database
from pondstack.db.journal import fingerprint
from pondstack.db.moves import MOVES
from pondstack.db.tables import Moves, Tables
from pondstack.domain import borrowing
from pondstack.domain.errors import BadRequest, Conflict, NotAligned, NotFound
from pondstack.domain.ledger import LET_GO
from pondstack.domain.lending import LENDER_LOST, Buffer, Lender, LenderKind, RemoteAllocation
from pondstack.domain.states import OWNED, SliceEvent, SliceState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BorrowRequest:
    """What a borrower asks for. `guaranteed`: all or nothing; else as much as there is, up to `remote_mib`."""

    consumer_uuid: str
    host: str
    remote_mib: int
    buffer_mib: int
    guaranteed: bool
    project_id: str = ""
    user_id: str = ""


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

    # Lenders

    def delegate(self, operation_id: str, lender: Lender, offsets_mib: Mapping[int, int]) -> int:
        """A host offers buffers, by index (GS_goto_zombie, before it sleeps); returns how many are new.

        Another incarnation than before: what the former one had is lost, see `lender_lost`. Raises BadRequest for
        another size of buffers than the rack's, HostUnusable.
        """

        def work(session: Session) -> dict[str, Any]:
            tables = self._tables
            tables.pools.check_host(session, lender.host)
            known = tables.buffers.lender(session, lender.host)
            moves: Moves = []
            if known is not None and known.incarnation != lender.incarnation:
                moves = self._lose(session, lender.host, lender.incarnation)
            if (
                known is not None
                and known.buffer_mib != lender.buffer_mib
                and tables.buffers.of_lender(session, lender.host)
            ):
                raise BadRequest(
                    f"host {lender.host} has lent buffers of {known.buffer_mib} MiB and offers some of "
                    f"{lender.buffer_mib}; give [lending] buffer_mib one value in the rack"
                )
            tables.buffers.put_lender(session, lender)
            there = {
                item.index
                for item in tables.buffers.of_lender(session, lender.host)
                if item.incarnation == lender.incarnation
            }
            new = [
                Buffer(lender.host, lender.incarnation, index, offset, lender.buffer_mib, lender.kind)
                for index, offset in sorted(offsets_mib.items())
                if index not in there
            ]
            tables.buffers.add(session, new)
            return {"buffers": [item.index for item in new], BUFFER_MOVES: moves, MOVES: []}

        arguments = asdict(lender) | {"offsets_mib": {str(index): mib for index, mib in offsets_mib.items()}}
        return len(self._once(operation_id, "delegate", arguments, work)["buffers"])

    def lender_lost(self, host: str, incarnation: str) -> int:
        """The memory of a lender's former life is gone: only `incarnation` counts. Returns how many were in use.

        What somebody owned is set aside until that host has let go of it; the rest is forgotten.
        """

        def work(session: Session) -> dict[str, Any]:
            known = self._tables.buffers.lender(session, host)
            if known is None or known.incarnation == incarnation:
                return {"buffers": [], BUFFER_MOVES: [], MOVES: []}
            moves = self._lose(session, host, incarnation)
            self._tables.buffers.put_lender(session, Lender(host, incarnation, known.kind, known.buffer_mib))
            return {"buffers": _indexes(moves), BUFFER_MOVES: moves, MOVES: []}

        return len(self._once(str(uuid4()), "lender_lost", {"host": host}, work)["buffers"])

    def set_kind(self, operation_id: str, host: str, kind: LenderKind, promised: Mapping[int, str]) -> None:
        """A lender is about to sleep, with its free buffers promised to one host each; or it is awake again.

        Promises of buffers that somebody has got meanwhile are dropped: those are their owner's. Raises NotFound.
        """

        def work(session: Session) -> dict[str, Any]:
            known = self._tables.buffers.lender(session, host)
            if known is None:
                raise NotFound(f"host {host} lends nothing")
            mine = self._tables.buffers.of_lender(session, host)
            self._tables.buffers.put_lender(session, Lender(host, known.incarnation, kind, known.buffer_mib))
            self._tables.buffers.mark(session, mine, promised_to=None)
            by_borrower: dict[str, list[Buffer]] = {}
            for item in mine:
                if item.index in promised and item.state is SliceState.FREE:
                    by_borrower.setdefault(promised[item.index], []).append(item)
            for borrower, items in by_borrower.items():
                self._tables.buffers.mark(session, items, promised_to=borrower)
            return {"kind": str(kind), MOVES: []}

        arguments = {"host": host, "kind": str(kind), "promised": {str(key): value for key, value in promised.items()}}
        self._once(operation_id, "set_kind", arguments, work)

    def begin_reclaim(self, operation_id: str, host: str, mib: int) -> list[str]:
        """A lender wants so much back (GS_reclaim): free buffers first; the rest is asked of their borrowers.

        All of them stop being given out at once. Returns the allocations that have to give some back (US_reclaim).
        Raises NotFound, NotAligned.
        """

        def work(session: Session) -> dict[str, Any]:
            known = self._tables.buffers.lender(session, host)
            if known is None:
                raise NotFound(f"host {host} lends nothing")
            count = _buffers_for(mib, known.buffer_mib)
            mine = [
                item for item in self._tables.buffers.of_lender(session, host) if item.incarnation == known.incarnation
            ]
            chosen = borrowing.to_reclaim(mine, count, self._tables.buffers.unguaranteed(session))
            self._tables.buffers.mark(session, chosen, leaving=True)
            held = [item for item in chosen if item.state in (SliceState.ASSIGNING, SliceState.ONLINE)]
            moves = self._move_buffers(session, held, SliceEvent.RELEASE, reason=f"lender {host} wants it back")
            owners = sorted({item.allocation_uuid or "" for item in chosen if item.state in OWNED})
            return {"allocations": owners, "buffers": [item.index for item in chosen], BUFFER_MOVES: moves, MOVES: []}

        effect = self._once(operation_id, "begin_reclaim", {"host": host, "mib": mib}, work)
        return list(effect["allocations"])

    def withdrawn(self, host: str, incarnation: str, indexes: Iterable[int]) -> int:
        """The lender has its memory back: free buffers that were leaving are forgotten. Returns how many."""
        wanted = set(indexes)

        def work(session: Session) -> dict[str, Any]:
            gone = [
                item
                for item in self._tables.buffers.of_lender(session, host)
                if (item.incarnation, item.state) == (incarnation, SliceState.FREE)
                and item.leaving
                and item.index in wanted
            ]
            self._tables.buffers.remove(session, gone)
            self._tables.buffers.drop_lender(session, host)
            return {"buffers": [item.index for item in gone], MOVES: []}

        return len(self._once(str(uuid4()), "withdrawn", {"host": host}, work)["buffers"])

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

    def borrow(self, operation_id: str, request: BorrowRequest) -> dict[str, Any]:
        """Take free buffers for a consumer (GS_alloc_ext when guaranteed, else GS_alloc_swap).

        Returns {"allocation_uuid", "buffers": [{"lender", "incarnation", "index", "offset_mib", "size_mib",
        "generation"}]}; no buffer at all when nothing is guaranteed and nothing is free: then there is no allocation.
        Raises BufferShortage, NotAligned, HostUnusable, OperationMismatch, and Conflict when the operation's
        allocation has been released since.
        """
        uuid = str(uuid5(NAMESPACE_OID, f"pondstack remote allocation {operation_id}"))

        def guarded(session: Session) -> dict[str, Any]:
            digest = fingerprint(asdict(request))
            effect = self._tables.journal.recall(session, operation_id, "borrow", digest)
            if effect is None:
                effect = self._borrow(session, operation_id, uuid, request)
                self._tables.journal.record(session, operation_id, "borrow", digest, self.epoch, effect)
            elif effect["buffers"] and self._tables.buffers.allocation(session, uuid) is None:
                raise Conflict(f"the allocation of operation {operation_id} was released; make a new operation id")
            return effect

        return self._write(guarded)

    def _borrow(self, session: Session, operation_id: str, uuid: str, request: BorrowRequest) -> dict[str, Any]:
        tables = self._tables
        tables.pools.check_host(session, request.host)
        count = _buffers_for(request.remote_mib, request.buffer_mib)
        free = [item for item in tables.buffers.free(session) if item.size_mib == request.buffer_mib]
        # A zombie's agent is silent because it sleeps.
        asleep = {item.lender for item in free if item.kind is LenderKind.ZOMBIE}
        down = tables.buffers.silent(session, self._down) - asleep
        chosen = borrowing.choose(borrowing.usable(free, request.host, down), count, guaranteed=request.guaranteed)
        if chosen:
            asked = {name: value for name, value in asdict(request).items() if not name.endswith("_mib")}
            tables.buffers.add_allocation(session, uuid, operation_id, asked)
        moves = self._move_buffers(session, chosen, SliceEvent.ASSIGN, host=request.host, allocation_uuid=uuid)
        return {"allocation_uuid": uuid, "buffers": [_given(item) for item in chosen], BUFFER_MOVES: moves, MOVES: []}

    def acknowledge_borrowed(self, operation_id: str, allocation_uuid: str, host: str) -> None:
        """The borrower has opened the keys: ASSIGNING becomes ONLINE. Raises NotFound, Conflict, IllegalTransition."""

        def work(session: Session) -> dict[str, Any]:
            if not self._borrows(session, allocation_uuid, host):
                raise NotFound(f"there is no allocation {allocation_uuid}; it was released, borrow again")
            mine = self._tables.buffers.of_allocation(session, allocation_uuid)
            waiting = [item for item in mine if item.state is SliceState.ASSIGNING]
            moves = self._move_buffers(session, waiting, SliceEvent.ACKNOWLEDGE)
            return {"buffers": [item.index for item in waiting], BUFFER_MOVES: moves, MOVES: []}

        self._once(operation_id, "acknowledge_borrowed", {"uuid": allocation_uuid, "host": host}, work)

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
            lost = [item for item in mine if item.reason.startswith(LENDER_LOST)]
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

    def _lose(self, session: Session, host: str, incarnation: str) -> Moves:
        old = [item for item in self._tables.buffers.of_lender(session, host) if item.incarnation != incarnation]
        owned = [item for item in old if item.state in OWNED]
        # What nobody owns has nobody to let go of it. What was aside already keeps its owner, and is told apart below.
        aside = [item for item in old if item.state is SliceState.QUARANTINED and item.allocation_uuid]
        why = f"{LENDER_LOST}: the memory of host {host} has begun a new life"
        self._tables.buffers.remove(session, [item for item in old if item not in owned and item not in aside])
        self._tables.buffers.mark(session, aside, reason=why)
        return self._move_buffers(session, owned, SliceEvent.QUARANTINE, reason=why)

    def _borrows(self, session: Session, uuid: str, host: str) -> bool:
        """Return whether there is such an allocation; raises Conflict when it is another host's."""
        found = self._tables.buffers.allocation(session, uuid)
        if found is not None and found.host != host:
            raise Conflict(f"allocation {uuid} belongs to host {found.host}, not to {host}")
        return found is not None

    def _move_buffers(self, session: Session, items: Sequence[Buffer], *events: SliceEvent, **target: Any) -> Moves:
        return self._tables.buffers.move(session, items, *events, epoch=self.epoch, **target)


def _buffers_for(mib: int, buffer_mib: int) -> int:
    if mib < 1 or mib % buffer_mib:
        raise NotAligned(f"{mib} MiB is no whole number of buffers of {buffer_mib} MiB")
    return mib // buffer_mib


def _given(item: Buffer) -> dict[str, Any]:
    return {
        "lender": item.lender,
        "incarnation": item.incarnation,
        "index": item.index,
        "offset_mib": item.offset_mib,
        "size_mib": item.size_mib,
        "generation": item.generation + 1,
    }


def _indexes(moves: Moves) -> list[int]:
    return [index for move in moves for index in move["indexes"]]
