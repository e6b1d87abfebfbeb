"""What the ledger writes of memory that hosts lend (Zombieland, section 4); see pondstack.ledger.loans for who has it.

The paper's calls are named in brackets. Buffers go through the states of slices; nothing is handed on before its
borrower has let go of it and its lender has said that the borrower's key is dead and the memory fresh. Every method is
one transaction (pondstack.ledger.transactions).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pondstack.domain import buffer_choice
from pondstack.domain.causes import Cause
from pondstack.domain.errors import BadRequest, NotFound
from pondstack.domain.lending import (
    IN_USE,
    Buffer,
    Lender,
    LenderKind,
    present,
    waits_for_its_key,
    withdrawable,
)
from pondstack.domain.states import OWNED, SliceEvent, SliceState
from pondstack.ledger.buffer_inheritance import disinherit, inherit, wanted_back
from pondstack.ledger.escrow import forget_keys
from pondstack.ledger.hosts import usable_host
from pondstack.ledger.moves import BUFFER_MOVES, MOVES, Moves, move
from pondstack.ledger.store import Transaction
from pondstack.ledger.transactions import Transactions


class Delegated(NamedTuple):
    """How many buffers are new, and how many that somebody had are gone."""

    new: int
    lost: int


class Buffers:
    """The buffers of all lenders; what borrowers do with them is in Loans."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._store = transactions.store

    def find(self, lender: str | None = None) -> list[Buffer]:
        """Return the buffers of a lender, or all, by lender and index."""
        buffers = self._store.buffers
        return self._transactions.read(
            lambda tx: buffers.everything(tx) if lender is None else buffers.of_lender(tx, lender)
        )

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
            if known is not None and (known.kind, lender.kind) == (LenderKind.ACTIVE, LenderKind.ZOMBIE):
                # While it was awake it may have ended keys without the ledger's hearing of it: they are made anew. What
                # went back to it asleep may still hold its borrower's bytes: it waits, without a key, for its lender.
                free = [item for item in there.values() if item.is_free]
                forget_keys(self._store, tx, [item for item in free if not item.promised_to])
                self._store.escrow.remove(tx, [item for item in free if item.promised_to])
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
            moves = self._move(tx, held, SliceEvent.RELEASE, reason=wanted_back(host))
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
            forget_keys(self._store, tx, done)
            return {"buffers": [item.index for item in done], BUFFER_MOVES: moves, MOVES: []}

        return len(self._transactions.journal("buffers_sanitized", {"host": host}, work)["buffers"])

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
            forget_keys(self._store, tx, done)
            self._store.buffers.drop_empty(tx, {item.allocation_uuid or "" for item in done})
            return {"buffers": [item.index for item in done], BUFFER_MOVES: moves, MOVES: []}

        return len(self._transactions.journal("free_fenced", {"host": host}, work)["buffers"])

    def fence(self, tx: Transaction, name: str, why: str) -> Moves:
        """Set aside what a fenced host borrowed, and give up what it lent, within a transaction of the host's fence.

        What it was handing over becomes its heir's; what was being handed over to it stays with its owner.
        """
        held = self._store.buffers.of_borrower(tx, name)
        handed = [item for item in held if item.heir is not None]
        mine = [item for item in held if item.heir is None and item.state in OWNED]
        moves = inherit(self._store, tx, handed, epoch=self._transactions.epoch)
        disinherit(self._store, tx, self._store.buffers.of_heirs(tx, name))
        moves += self._move(tx, mine, SliceEvent.QUARANTINE, reason=why, cause=Cause.HOST_FENCED)
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
        forget_keys(self._store, tx, gone)
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

    def _free_of(self, tx: Transaction, host: str, incarnation: str) -> list[Buffer]:
        mine = self._store.buffers.of_lender(tx, host)
        return [item for item in mine if item.incarnation == incarnation and item.state is SliceState.FREE]

    def _move(self, tx: Transaction, items: Sequence[Buffer], *events: SliceEvent, **target: Any) -> Moves:
        return move(self._store.buffers.swap, tx, items, *events, epoch=self._transactions.epoch, **target)
