"""What the ledger writes of loans: the buffers that a consumer has on a host, as one (Zombieland, section 4).

The paper's calls are named in brackets; what the lenders of these buffers do is in pondstack.ledger.buffers.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from pondstack.domain import buffer_choice
from pondstack.domain.causes import Cause
from pondstack.domain.errors import Conflict, IllegalTransition, NotFound
from pondstack.domain.escrow import NOWHERE, Reach, of_host
from pondstack.domain.inheritance import to_hand_over
from pondstack.domain.lending import (
    IN_USE,
    Buffer,
    LenderKind,
    RemoteAllocation,
    buffers_for,
    check_claim,
    given,
)
from pondstack.domain.requests import BorrowRequest
from pondstack.domain.states import SliceEvent, SliceState
from pondstack.domain.transitions import LET_GO
from pondstack.ledger.buffer_inheritance import disinherit, inherit
from pondstack.ledger.hosts import usable_host
from pondstack.ledger.moves import BUFFER_MOVES, MOVES, Moves, move
from pondstack.ledger.store import Store, Transaction
from pondstack.ledger.transactions import Transactions

_OF_AN_ALLOCATION = ("consumer_uuid", "host", "guaranteed", "project_id", "user_id")


class Loans:
    """All loans. Each method is one transaction. `down_seconds`: silence after which a host's agent counts as gone."""

    def __init__(self, transactions: Transactions, down_seconds: float) -> None:
        self._transactions = transactions
        self._store = transactions.store
        self._down = down_seconds

    def allocations(self) -> list[RemoteAllocation]:
        """Return all allocations of lent memory, by UUID."""
        return self._transactions.read(self._store.buffers.allocations)

    def borrowers(self) -> list[str]:
        """Return the hosts that take part, by name: they say what they borrow, are heard of, and may have memory."""
        return self._transactions.read(lambda tx: self._store.buffers.borrowers(tx, self._down))

    def borrow(
        self,
        operation_id: str,
        request: BorrowRequest,
        buffer_mib: int,
        claimed_mib: int | None = None,
        sealing_keys: Collection[str] | None = None,
        held_back: bool = False,
    ) -> dict[str, Any]:
        """Take free buffers of `buffer_mib` for a consumer (GS_alloc_ext when guaranteed, else GS_alloc_swap).

        `claimed_mib`: what the consumer claims on the host; what it has guaranteed is never more. None: nobody looked.
        `sealing_keys`: the names of those that the controller has; what others sealed is not given. None: it has all.
        `held_back`: a best-effort loan gets nothing, since guaranteed ones wait for what comes back.

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
            {**request.fields(), "buffer_mib": buffer_mib},
            lambda tx: self._borrow(tx, operation_id, uuid, request, buffer_mib, claimed_mib, sealing_keys, held_back),
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
        sealing_keys: Collection[str] | None,
        held_back: bool,
    ) -> dict[str, Any]:
        usable_host(self._store, tx, request.host)
        wanted = buffers_for(request.remote_mib, buffer_mib)
        if request.guaranteed and claimed_mib is not None:
            check_claim(request, claimed_mib, guaranteed_mib(self._store, tx, request.consumer_uuid, request.host))
        handed = self._to_hand_over(tx, request, wanted, sealing_keys)
        usable = self._usable(tx, request.host, buffer_mib, sealing_keys)
        if held_back and not request.guaranteed:
            usable = []
        rest = wanted - len(handed)
        chosen = buffer_choice.choose(usable, rest, guaranteed=request.guaranteed) if rest else ()
        if chosen or handed:
            asked = {name: getattr(request, name) for name in _OF_AN_ALLOCATION}
            self._store.buffers.add_allocation(tx, uuid, operation_id, asked)
        moves = self._move(tx, chosen, SliceEvent.ASSIGN, host=request.host, allocation_uuid=uuid)
        self._store.buffers.mark(tx, handed, {"heir": uuid, "shared": True})
        self._disclose(tx, [item for item in chosen if item.escrowed], request.host)
        told = [*(given(item, handed=True) for item in handed), *map(given, chosen)]
        return {"allocation_uuid": uuid, "buffers": told, BUFFER_MOVES: moves, MOVES: []}

    def _to_hand_over(
        self, tx: Transaction, request: BorrowRequest, count: int, sealing_keys: Collection[str] | None
    ) -> list[Buffer]:
        """Return what a consumer has on the host that it moves from and the other one can read."""
        if not request.source or not request.guaranteed:
            return []
        mine = {
            item.uuid
            for item in self._store.buffers.allocations(tx)
            if item.guaranteed and (item.consumer_uuid, item.host) == (request.consumer_uuid, request.source)
        }
        held = self._store.buffers.of_borrower(tx, request.source) if mine else []
        items = [item for item in held if item.allocation_uuid in mine]
        reach, silent = self._reach(tx, request.host, sealing_keys), self._store.buffers.silent(tx, self._down)
        return to_hand_over(items, request.host, count, reach, silent)

    def missing(self, request: BorrowRequest, buffer_mib: int, sealing_keys: Collection[str] | None = None) -> int:
        """Return how many buffers a guaranteed loan lacks now; `sealing_keys`: see borrow."""
        return self._transactions.read(lambda tx: self._missing(tx, request, buffer_mib, sealing_keys))

    def _missing(
        self, tx: Transaction, request: BorrowRequest, buffer_mib: int, sealing_keys: Collection[str] | None
    ) -> int:
        wanted = buffers_for(request.remote_mib, buffer_mib)
        handed = self._to_hand_over(tx, request, wanted, sealing_keys)
        return wanted - len(handed) - len(self._usable(tx, request.host, buffer_mib, sealing_keys))

    def _usable(
        self, tx: Transaction, host: str, buffer_mib: int, sealing_keys: Collection[str] | None
    ) -> list[Buffer]:
        free = [item for item in self._store.buffers.free(tx) if item.size_mib == buffer_mib]
        # A zombie's agent is silent because it sleeps.
        asleep = {item.lender for item in free if item.kind is LenderKind.ZOMBIE}
        down = self._store.buffers.silent(tx, self._down) - asleep
        return buffer_choice.usable(free, host, down, self._reach(tx, host, sealing_keys))

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
            there = [*mine, *self._store.buffers.of_heir(tx, allocation_uuid)]
            if gone := sorted(set(opened) - {(item.incarnation, item.index) for item in there}):
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
            self._store.buffers.acknowledge(tx, allocation_uuid)
            return {"buffers": [item.index for item in waiting], BUFFER_MOVES: moves, MOVES: []}

        arguments = {"uuid": allocation_uuid, "host": host, "opened": [list(each) for each in opened]}
        self._transactions.once(operation_id, "acknowledge_borrowed", arguments, work)

    def release_abandoned(self, seconds: float) -> int:
        """ASSIGNING for longer than that becomes RELEASING: who borrowed it never acknowledged. Returns how many.

        No memory is handed on by it: its borrower is asked to let go, and its key dies, as of any other. What was to be
        handed over to such a loan stays with its owner.
        """
        buffers = self._store.buffers
        if not self._transactions.read(
            lambda tx: buffers.unacknowledged(tx, seconds) or buffers.of_unacknowledged_heirs(tx, seconds)
        ):
            return 0

        def abandoned(tx: Transaction) -> list[Buffer]:
            left = buffers.of_unacknowledged_heirs(tx, seconds)
            disinherit(self._store, tx, left)
            buffers.drop_empty(tx, {item.heir or "" for item in left})
            return buffers.unacknowledged(tx, seconds)

        return self._ask_back(abandoned, f"it was not acknowledged within {seconds:g} s")

    def release_unacknowledged(self, allocation_uuid: str, reason: str) -> int:
        """ASSIGNING of an allocation becomes RELEASING, as release_abandoned does; returns how many.

        What its borrower has acknowledged stays, with what is to be handed over to it: another attempt of the same
        operation has answered it. Else that stays with its owner.
        """

        def waiting(tx: Transaction) -> list[Buffer]:
            known = self._store.buffers.allocation(tx, allocation_uuid)
            if known is not None and not known.acknowledged:
                disinherit(self._store, tx, self._store.buffers.of_heir(tx, allocation_uuid))
                self._store.buffers.drop_empty(tx, [allocation_uuid])
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

        They go to SANITIZING, quarantined ones too; those whose lender lost them are forgotten. Those whose key is in
        escrow stay the borrower's until their lender is awake, and are FREE for it. What is being handed over becomes
        its heir's; what was to be the borrower's is not any more. Returns the lenders that have to revoke keys. Raises
        Conflict when the allocation is another host's.
        """

        def work(tx: Transaction) -> dict[str, Any]:
            self._borrows(tx, allocation_uuid, host)
            mine = [
                item
                for item in self._store.buffers.of_allocation(tx, allocation_uuid)
                if item.host == host and (only is None or (item.incarnation, item.index) in set(only))
            ]
            handed = [item for item in mine if item.heir is not None]
            lost = [item for item in mine if item.cause is Cause.LENDER_LOST and item not in handed]
            refused = [
                item
                for item in self._store.buffers.of_heir(tx, allocation_uuid)
                if only is None or (item.incarnation, item.index) in set(only)
            ]
            kept = [item for item in mine if item not in lost and item not in handed]
            stay = self._staying(tx, kept, host)
            moves: Moves = inherit(self._store, tx, handed, epoch=self._transactions.epoch)
            disinherit(self._store, tx, refused)
            for state in sorted({item.state for item in kept}):
                same = [item for item in kept if item.state is state]
                moves += self._move(tx, [item for item in same if item not in stay], *LET_GO[state])
                again = [item for item in same if item in stay]
                moves += self._move(tx, again, *LET_GO[state], SliceEvent.SANITIZED)
            self._store.buffers.remove(tx, lost)
            self._store.buffers.drop_empty(tx, [allocation_uuid])
            told = [item for item in (*kept, *handed, *refused) if item not in stay]
            lenders = sorted({item.lender for item in told})
            return {"lenders": lenders, "lost": len(lost), BUFFER_MOVES: moves, MOVES: []}

        arguments = {"uuid": allocation_uuid, "host": host, "only": None if only is None else [list(i) for i in only]}
        return list(self._transactions.once(operation_id, "give_back", arguments, work)["lenders"])

    def ask_back(self, allocation_uuid: str, reason: str, only: Sequence[tuple[str, int]] | None = None) -> int:
        """What is in use of a loan becomes RELEASING, all of it or `only` these (incarnation, index); how many are.

        No memory is handed on by it: its borrower is asked to let go, and its key dies, as of any other.
        """

        def in_use(tx: Transaction) -> list[Buffer]:
            mine = [item for item in self._store.buffers.of_allocation(tx, allocation_uuid) if item.state in IN_USE]
            return [item for item in mine if only is None or (item.incarnation, item.index) in set(only)]

        return self._ask_back(in_use, reason)

    def make_way(
        self,
        request: BorrowRequest,
        buffer_mib: int,
        lends: Mapping[str, int],
        reason: str,
        sealing_keys: Collection[str] | None = None,
    ) -> tuple[int, int]:
        """Have best-effort loans give way to a guaranteed one (Zombieland 4.4).

        `lends`: MiB that hosts are to lend in all. What the loan lacks at this moment counts, without what these do not
        lend yet and what comes back anyway; only the rest becomes RELEASING: its borrowers are asked to let go, and its
        keys die, as of any other. Returns how many buffers come back, and how many of these were asked for now. None
        is, and none counts, when all together are too few.
        """

        def plan(tx: Transaction) -> tuple[int, int, tuple[Buffer, ...]]:
            known = self._store.buffers.everything(tx)
            coming, swap, loans = self._way(tx, known, request.host, buffer_mib)
            lent = buffer_choice.to_be_lent(known, lends, buffer_mib)
            count = self._missing(tx, request, buffer_mib, sealing_keys) - sum(lent.values())
            return count, coming, buffer_choice.to_give_way(swap, count - coming, loans)

        def work(tx: Transaction) -> dict[str, Any]:
            count, coming, chosen = plan(tx)
            moves = self._move(tx, chosen, SliceEvent.RELEASE, reason=reason)
            buffers = [item.index for item in chosen]
            return {"buffers": buffers, "coming": coming, "count": count, BUFFER_MOVES: moves, MOVES: []}

        count, coming, chosen = self._transactions.read(plan)
        asked = 0
        if chosen:
            effect = self._transactions.journal("make_way", {"host": request.host, "lends": dict(lends)}, work)
            count, coming, asked = effect["count"], effect["coming"], len(effect["buffers"])
        return (coming + asked, asked) if coming + asked >= count else (0, asked)

    def way(self, host: str, buffer_mib: int) -> tuple[int, int]:
        """Return how many buffers come back anyway for a loan of a host, and how many can give way besides."""

        def look(tx: Transaction) -> tuple[int, int]:
            coming, swap, _ = self._way(tx, self._store.buffers.everything(tx), host, buffer_mib)
            return coming, len(swap)

        return self._transactions.read(look)

    def _way(
        self, tx: Transaction, known: Iterable[Buffer], host: str, buffer_mib: int
    ) -> tuple[int, list[Buffer], dict[str, str]]:
        """Return how many come back anyway, the best-effort ones that can, and whose those are, by allocation."""
        silent = self._store.buffers.silent(tx, self._down)
        items = [item for item in known if item.size_mib == buffer_mib and item.lender != host]
        loans = {each.uuid: each.consumer_uuid for each in self._store.buffers.allocations(tx) if not each.guaranteed}
        coming = sum(buffer_choice.comes_back(item, silent) for item in items)
        swap = [item for item in items if item.allocation_uuid in loans and buffer_choice.gives_way(item, silent)]
        return coming, swap, loans

    def mark_claims(self, claimed: Sequence[str], unclaimed: Sequence[str]) -> None:
        """Note which loans Placement backs with a claim; an unclaimed one keeps the moment of its first note."""
        if claimed or unclaimed:
            self._transactions.write(lambda tx: self._store.buffers.mark_claims(tx, claimed, unclaimed))

    def _ask_back(self, find: Callable[[Transaction], list[Buffer]], reason: str) -> int:
        def work(tx: Transaction) -> dict[str, Any]:
            found = find(tx)
            moves = self._move(tx, found, SliceEvent.RELEASE, reason=reason)
            return {"buffers": [item.index for item in found], BUFFER_MOVES: moves, MOVES: []}

        return len(self._transactions.journal("ask_back", {"reason": reason}, work)["buffers"])

    def _reach(self, tx: Transaction, host: str, sealing_keys: Collection[str] | None = None) -> Reach:
        """Return what a host can use of lenders that sleep."""
        keys = self._store.escrow.of_borrower(tx, host)
        good = [key for key in keys if sealing_keys is None or key.sealing_key in sealing_keys]
        return of_host(good, self._store.buffers.links(tx).get(host, ()))

    def _disclose(self, tx: Transaction, items: Sequence[Buffer], host: str) -> None:
        """Note that a host gets keys which nobody ends while their lender sleeps: nobody else may get the buffers."""
        self._store.buffers.mark(tx, items, {"promised_to": host})
        self._store.escrow.disclose(tx, items, host)

    def _staying(self, tx: Transaction, items: Sequence[Buffer], host: str) -> list[Buffer]:
        """Return the buffers that stay their borrower's when it gives them back: their lender may sleep.

        Of those that a guest has moved with, or was to, two hosts have keys: nobody gets them before all have ended.
        """
        asleep = [
            item for item in items if item.kind is LenderKind.ZOMBIE and item.promised_to == host and not item.shared
        ]
        reach = self._reach(tx, host) if asleep else NOWHERE
        return [item for item in asleep if reach.has_key(item)]

    def _borrows(self, tx: Transaction, uuid: str, host: str) -> bool:
        """Return whether there is such an allocation; raises Conflict when it is another host's."""
        found = self._store.buffers.allocation(tx, uuid)
        if found is not None and found.host != host:
            raise Conflict(f"allocation {uuid} belongs to host {found.host}, not to {host}")
        return found is not None

    def _move(self, tx: Transaction, items: Sequence[Buffer], *events: SliceEvent, **target: Any) -> Moves:
        return move(self._store.buffers.swap, tx, items, *events, epoch=self._transactions.epoch, **target)


def guaranteed_mib(store: Store, tx: Transaction, consumer_uuid: str, host: str) -> int:
    """Return how much a consumer has guaranteed on a host, in MiB, without what is on its way back."""
    mine = {
        item.uuid
        for item in store.buffers.allocations(tx)
        if item.guaranteed and (item.consumer_uuid, item.host) == (consumer_uuid, host)
    }
    held = store.buffers.of_borrower(tx, host) if mine else []
    return sum(item.size_mib for item in held if item.state in IN_USE and item.allocation_uuid in mine)
