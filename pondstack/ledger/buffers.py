"""What the ledger writes of memory that hosts lend (Zombieland, section 4).

The paper's calls are named in brackets. Buffers go through the states of slices; nothing is handed on before its
borrower has let go of it and its lender has said that the borrower's key is dead and the memory fresh. Every method is
one transaction (pondstack.ledger.transactions).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple
from uuid import NAMESPACE_OID, uuid5

from pondstack.domain import buffer_choice
from pondstack.domain.causes import Cause
from pondstack.domain.errors import BadRequest, Conflict, IllegalTransition, NotFound
from pondstack.domain.lending import (
    IN_USE,
    Buffer,
    Lender,
    LenderKind,
    RemoteAllocation,
    buffers_for,
    check_claim,
    given,
    present,
    waits_for_its_key,
    withdrawable,
)
from pondstack.domain.requests import BorrowRequest
from pondstack.domain.states import OWNED, SliceEvent, SliceState
from pondstack.domain.transitions import LET_GO
from pondstack.ledger.hosts import usable_host
from pondstack.ledger.loans import guaranteed_mib
from pondstack.ledger.moves import BUFFER_MOVES, MOVES, Moves, move
from pondstack.ledger.store import Transaction
from pondstack.ledger.transactions import Transactions


class Delegated(NamedTuple):
    """How many buffers are new, and how many that somebody had are gone."""

    new: int
    lost: int


class Buffers:
    """The buffers of all lenders. `down_seconds`: silence after which a host's agent counts as gone."""

    def __init__(self, transactions: Transactions, down_seconds: float) -> None:
        self._transactions = transactions
        self._store = transactions.store
        self._down = down_seconds

    def find(self, lender: str | None = None) -> list[Buffer]:
        """Return the buffers of a lender, or all, by lender and index."""
        buffers = self._store.buffers
        return self._transactions.read(
            lambda tx: buffers.everything(tx) if lender is None else buffers.of_lender(tx, lender)
        )

    def allocations(self) -> list[RemoteAllocation]:
        """Return all allocations of lent memory, by UUID."""
        return self._transactions.read(self._store.buffers.allocations)

    def borrowers(self) -> list[str]:
        """Return the hosts that take part, by name: they say what they borrow, are heard of, and may have memory."""
        return self._transactions.read(lambda tx: self._store.buffers.borrowers(tx, self._down))

    # Lenders

    def delegate(
        self, lender: Lender, sequence: int, offsets_mib: Mapping[int, int], *, admitted: bool = True
    ) -> Delegated:
        """Write down all that a host lends, by index (GS_goto_zombie, before it sleeps): what is not told is not lent.

        A lower `sequence` than before is late and changes nothing. What was lent and is lent no more, as everything of
        a former incarnation, is forgotten; what of that has an owner is set aside until he has let go of it. An
        incarnation '' lends nothing. New buffers may be borrowed at once if they are `admitted`, else after `admit`.
        Raises BadRequest for buffers of two sizes, HostUnusable.
        """

        def work(tx: Transaction) -> Delegated:
            buffers = self._store.buffers
            known = buffers.lender(tx, lender.host)
            if known is not None and known.sequence > sequence:
                return Delegated(0, 0)
            if offsets_mib:
                usable_host(self._store, tx, lender.host)
            elif known is None and self._store.hosts.get(tx, lender.host) is None:
                return Delegated(0, 0)  # the last word of a host that was removed
            mine = buffers.of_lender(tx, lender.host)
            there = {item.index: item for item in mine if item.incarnation == lender.incarnation}
            gone = [item for item in mine if there.get(item.index) != item or item.index not in offsets_mib]
            lost = self._lose(tx, gone)
            if {item.size_mib for item in mine if item not in gone} - {lender.buffer_mib}:
                raise BadRequest(
                    f"host {lender.host} offers buffers of {lender.buffer_mib} MiB and has lent some of another size; "
                    "give [lending] buffer_mib one value in the rack"
                )
            # Kept when nothing is lent any more, too: a late word must find that it is late.
            size = lender.buffer_mib or (known.buffer_mib if known else 0)
            buffers.put_lender(tx, replace(lender, sequence=sequence, buffer_mib=size))
            new = [
                Buffer(
                    lender.host,
                    lender.incarnation,
                    index,
                    offset,
                    lender.buffer_mib,
                    lender.kind,
                    admitted=admitted,
                )
                for index, offset in sorted(offsets_mib.items())
                if index not in there
            ]
            buffers.add(tx, new)
            return Delegated(len(new), lost)

        return self._transactions.write(work)

    def admit(self, host: str, incarnation: str, indexes: Iterable[int]) -> list[int]:
        """Let these buffers be borrowed: they have left what Nova may place. Returns which were not admitted before."""
        wanted = set(indexes)

        def work(tx: Transaction) -> dict[str, Any]:
            mine = self._store.buffers.of_lender(tx, host)
            new = [i for i in mine if i.incarnation == incarnation and i.index in wanted and not i.admitted]
            self._store.buffers.mark(tx, new, {"admitted": True})
            return {"buffers": [item.index for item in new], BUFFER_MOVES: [], MOVES: []}

        return list(self._transactions.journal("admit_buffers", {"host": host}, work)["buffers"])

    def next_generation(self, host: str, incarnation: str, indexes: Iterable[int]) -> dict[int, int]:
        """Begin a generation of keys of free buffers, for a promise; returns it by index, of those that are free."""
        wanted = set(indexes)

        def work(tx: Transaction) -> dict[int, int]:
            mine = [item for item in self._free_of(tx, host, incarnation) if item.index in wanted]
            self._store.buffers.renew(tx, mine)
            return {item.index: item.generation + 1 for item in mine}

        return self._transactions.write(work)

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

        def work(tx: Transaction) -> int:
            by_borrower: dict[str | None, list[Buffer]] = {}
            for item in self._free_of(tx, host, incarnation):
                same = generations is None or generations.get(item.index) == item.generation
                if item.index in promised and same:
                    by_borrower.setdefault(promised[item.index], []).append(item)
            for borrower, items in by_borrower.items():
                self._store.buffers.mark(tx, items, {"promised_to": borrower})
            return sum(map(len, by_borrower.values()))

        return self._transactions.write(work)

    def reclaim(self, operation_id: str, host: str, mib: int) -> list[int]:
        """A lender wants so much back (GS_reclaim): free buffers first; the rest is asked of their borrowers.

        None of them is given out from now on; what is ONLINE goes to RELEASING (US_reclaim). Returns those of them, by
        index, that nobody has at this moment: the lender may withdraw them. Raises NotFound.
        """

        def work(tx: Transaction) -> dict[str, Any]:
            known = self._lender(tx, host)
            count = -(-mib // known.buffer_mib)
            mine = present(self._store.buffers.of_lender(tx, host), known)
            chosen = buffer_choice.to_reclaim(mine, count, self._store.buffers.unguaranteed(tx))
            self._store.buffers.mark(tx, chosen, {"leaving": True})
            held = [item for item in chosen if item.state in IN_USE]
            moves = self._move(tx, held, SliceEvent.RELEASE, reason=f"lender {host} wants it back")
            incarnation = known.incarnation
            chosen_indexes = [item.index for item in chosen]
            return {"incarnation": incarnation, "buffers": chosen_indexes, BUFFER_MOVES: moves, MOVES: []}

        effect = self._transactions.once(operation_id, "reclaim_buffers", {"host": host, "mib": mib}, work)
        chosen = {(effect["incarnation"], index) for index in effect["buffers"]}
        return [
            item.index for item in self.find(host) if (item.incarnation, item.index) in chosen and withdrawable(item)
        ]

    def sanitized(self, host: str, incarnation: str, indexes: Iterable[int]) -> int:
        """SANITIZING becomes FREE: the lender has killed the borrower's key, and the memory is fresh.

        Returns how many.
        """
        wanted = set(indexes)

        def work(tx: Transaction) -> dict[str, Any]:
            done = [
                item
                for item in self._store.buffers.of_lender(tx, host)
                if (item.incarnation, item.state) == (incarnation, SliceState.SANITIZING) and item.index in wanted
            ]
            moves = self._move(tx, done, SliceEvent.SANITIZED)
            return {"buffers": [item.index for item in done], BUFFER_MOVES: moves, MOVES: []}

        return len(self._transactions.journal("buffers_sanitized", {"host": host}, work)["buffers"])

    # Borrowers

    def borrow(
        self, operation_id: str, request: BorrowRequest, buffer_mib: int, claimed_mib: int | None = None
    ) -> dict[str, Any]:
        """Take free buffers of `buffer_mib` for a consumer (GS_alloc_ext when guaranteed, else GS_alloc_swap).

        `claimed_mib`: what the consumer claims on the host; what it has guaranteed is never more. None: nobody looked.

        Returns {"allocation_uuid", "buffers": [{"lender", "incarnation", "index", "offset_mib", "size_mib",
        "generation"}]}; no buffer at all when nothing is guaranteed and nothing is free: then there is no allocation.
        Raises BufferShortage, NotAligned, HostUnusable, Unclaimed, OperationMismatch, and Conflict when the
        operation's allocation has been released since.
        """
        uuid = str(uuid5(NAMESPACE_OID, f"pondstack remote allocation {operation_id}"))

        def repeated(tx: Transaction, effect: dict[str, Any]) -> None:
            if effect["buffers"] and self._store.buffers.allocation(tx, uuid) is None:
                raise Conflict(f"the allocation of operation {operation_id} was released; make a new operation id")

        return self._transactions.once(
            operation_id,
            "borrow",
            {**asdict(request), "buffer_mib": buffer_mib},
            lambda tx: self._borrow(tx, operation_id, uuid, request, buffer_mib, claimed_mib),
            repeated,
        )

    def _borrow(
        self,
        tx: Transaction,
        operation_id: str,
        uuid: str,
        request: BorrowRequest,
        buffer_mib: int,
        claimed_mib: int | None,
    ) -> dict[str, Any]:
        usable_host(self._store, tx, request.host)
        count = buffers_for(request.remote_mib, buffer_mib)
        if request.guaranteed and claimed_mib is not None:
            check_claim(request, claimed_mib, guaranteed_mib(self._store, tx, request.consumer_uuid, request.host))
        free = [item for item in self._store.buffers.free(tx) if item.size_mib == buffer_mib]
        # A zombie's agent is silent because it sleeps.
        asleep = {item.lender for item in free if item.kind is LenderKind.ZOMBIE}
        down = self._store.buffers.silent(tx, self._down) - asleep
        chosen = buffer_choice.choose(
            buffer_choice.usable(free, request.host, down), count, guaranteed=request.guaranteed
        )
        if chosen:
            asked = {name: value for name, value in asdict(request).items() if not name.endswith("_mib")}
            self._store.buffers.add_allocation(tx, uuid, operation_id, asked)
        moves = self._move(tx, chosen, SliceEvent.ASSIGN, host=request.host, allocation_uuid=uuid)
        return {"allocation_uuid": uuid, "buffers": [given(item) for item in chosen], BUFFER_MOVES: moves, MOVES: []}

    def acknowledge(
        self, operation_id: str, allocation_uuid: str, host: str, opened: Sequence[tuple[str, int]] = ()
    ) -> None:
        """The borrower has the keys: ASSIGNING becomes ONLINE, all or none.

        `opened`: those it is going to use, (incarnation, index) each. Raises NotFound, Conflict when one of them is the
        allocation's no more, and IllegalTransition when a buffer is on its way back or lost.
        """

        def work(tx: Transaction) -> dict[str, Any]:
            if not self._borrows(tx, allocation_uuid, host):
                raise NotFound(f"there is no allocation {allocation_uuid}; it was released, borrow again")
            mine = self._store.buffers.of_allocation(tx, allocation_uuid)
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
            moves = self._move(tx, waiting, SliceEvent.ACKNOWLEDGE)
            return {"buffers": [item.index for item in waiting], BUFFER_MOVES: moves, MOVES: []}

        arguments = {"uuid": allocation_uuid, "host": host, "opened": [list(each) for each in opened]}
        self._transactions.once(operation_id, "acknowledge_borrowed", arguments, work)

    def release_abandoned(self, seconds: float) -> int:
        """ASSIGNING for longer than that becomes RELEASING: who borrowed it never acknowledged. Returns how many.

        No memory is handed on by it: its borrower is asked to let go, and its key dies, as of any other.
        """
        if not self._transactions.read(lambda tx: self._store.buffers.unacknowledged(tx, seconds)):
            return 0

        why = f"it was not acknowledged within {seconds:g} s"
        return self._ask_back(lambda tx: self._store.buffers.unacknowledged(tx, seconds), why)

    def release_unacknowledged(self, allocation_uuid: str, reason: str) -> int:
        """ASSIGNING of an allocation becomes RELEASING, as release_abandoned does; returns how many.

        What its borrower has acknowledged stays: another attempt of the same operation has answered it.
        """

        def waiting(tx: Transaction) -> list[Buffer]:
            mine = self._store.buffers.of_allocation(tx, allocation_uuid)
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

        def work(tx: Transaction) -> dict[str, Any]:
            self._borrows(tx, allocation_uuid, host)
            mine = [
                item
                for item in self._store.buffers.of_allocation(tx, allocation_uuid)
                if item.host == host and (only is None or (item.incarnation, item.index) in set(only))
            ]
            lost = [item for item in mine if item.cause is Cause.LENDER_LOST]
            kept = [item for item in mine if item not in lost]
            moves: Moves = []
            for state in sorted({item.state for item in kept}):
                moves += self._move(tx, [i for i in kept if i.state is state], *LET_GO[state])
            self._store.buffers.remove(tx, lost)
            self._store.buffers.drop_empty(tx, [allocation_uuid])
            lenders = sorted({item.lender for item in kept})
            return {"lenders": lenders, "lost": len(lost), BUFFER_MOVES: moves, MOVES: []}

        arguments = {"uuid": allocation_uuid, "host": host, "only": None if only is None else [list(i) for i in only]}
        return list(self._transactions.once(operation_id, "give_back", arguments, work)["lenders"])

    def quarantine_unrevoked(self, host: str, incarnation: str, failed: Mapping[int, str]) -> int:
        """Set buffers aside that nobody owns; `failed`: why the lender's device did not end their keys, by index."""

        def work(tx: Transaction) -> dict[str, Any]:
            there = [item for item in self._store.buffers.of_lender(tx, host) if item.incarnation == incarnation]
            loose = (SliceState.SANITIZING, SliceState.FREE)
            mine = [item for item in there if item.index in failed and item.state in loose]
            cause, moves = Cause.REVOKE_FAILED, list[Any]()
            for item in mine:
                why = cause.reason(failed[item.index])
                moves += self._move(tx, [item], SliceEvent.QUARANTINE, reason=why, cause=cause)
            return {"buffers": [item.index for item in mine], BUFFER_MOVES: moves, MOVES: []}

        return len(self._transactions.journal("buffers_unrevoked", {"host": host}, work)["buffers"])

    def free_revoked(self, host: str, incarnation: str, indexes: Iterable[int]) -> int:
        """A lender has made the keys of buffers dead that waited for it: they are fresh, and free. Returns how many."""
        wanted = set(indexes)

        def work(tx: Transaction) -> dict[str, Any]:
            done = [
                item
                for item in self._store.buffers.of_lender(tx, host)
                if item.incarnation == incarnation and item.index in wanted and waits_for_its_key(item)
            ]
            moves = self._move(tx, done, SliceEvent.AUDIT, SliceEvent.SANITIZED)
            self._store.buffers.drop_empty(tx, {item.allocation_uuid or "" for item in done})
            return {"buffers": [item.index for item in done], BUFFER_MOVES: moves, MOVES: []}

        return len(self._transactions.journal("free_fenced", {"host": host}, work)["buffers"])

    def fence(self, tx: Transaction, name: str, why: str) -> Moves:
        """Set aside what a fenced host borrowed, and give up what it lent, within a transaction of the host's fence."""
        mine = [item for item in self._store.buffers.of_borrower(tx, name) if item.state in OWNED]
        moves = self._move(tx, mine, SliceEvent.QUARANTINE, reason=why, cause=Cause.HOST_FENCED)
        self._lose(tx, self._store.buffers.of_lender(tx, name))
        self._store.lends.remove(tx, name)
        known = self._store.buffers.lender(tx, name)
        if known is not None:
            # Its last word may come once more: it is of before, and late from now on.
            gone = replace(known, incarnation="", sequence=known.sequence + 1)
            self._store.buffers.put_lender(tx, gone)
        return moves

    def _lose(self, tx: Transaction, gone: Sequence[Buffer]) -> int:
        """Forget buffers whose memory is gone, or set them aside for their owners to let go; returns how many."""
        owned = [item for item in gone if item.state in OWNED]
        aside = [item for item in gone if item.state is SliceState.QUARANTINED and item.allocation_uuid]
        cause = Cause.LENDER_LOST
        why = {"reason": cause.reason("its lender does not have this memory any more"), "cause": cause}
        self._store.buffers.remove(tx, [item for item in gone if item not in owned and item not in aside])
        self._store.buffers.mark(tx, aside, why)
        moves = self._move(tx, owned, SliceEvent.QUARANTINE, **why)
        if moves:
            effect = {BUFFER_MOVES: moves, MOVES: []}
            self._transactions.note(tx, "lender_lost", {}, effect)
        return len(owned)

    def _lender(self, tx: Transaction, host: str) -> Lender:
        found = self._store.buffers.lender(tx, host)
        if found is None or not found.incarnation:
            raise NotFound(f"host {host} lends nothing; have it lend first: openstack memory host delegate {host}")
        return found

    def _ask_back(self, find: Callable[[Transaction], list[Buffer]], reason: str) -> int:
        def work(tx: Transaction) -> dict[str, Any]:
            found = find(tx)
            moves = self._move(tx, found, SliceEvent.RELEASE, reason=reason)
            return {"buffers": [item.index for item in found], BUFFER_MOVES: moves, MOVES: []}

        return len(self._transactions.journal("ask_back", {"reason": reason}, work)["buffers"])

    def _free_of(self, tx: Transaction, host: str, incarnation: str) -> list[Buffer]:
        mine = self._store.buffers.of_lender(tx, host)
        return [item for item in mine if item.incarnation == incarnation and item.state is SliceState.FREE]

    def _borrows(self, tx: Transaction, uuid: str, host: str) -> bool:
        """Return whether there is such an allocation; raises Conflict when it is another host's."""
        found = self._store.buffers.allocation(tx, uuid)
        if found is not None and found.host != host:
            raise Conflict(f"allocation {uuid} belongs to host {found.host}, not to {host}")
        return found is not None

    def _move(self, tx: Transaction, items: Sequence[Buffer], *events: SliceEvent, **target: Any) -> Moves:
        return move(self._store.buffers.swap, tx, items, *events, epoch=self._transactions.epoch, **target)
