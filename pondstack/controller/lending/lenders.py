"""What the leader does with lent memory: it gives buffers with their keys to borrowers, and takes them back.

Zombieland (EuroSys'18), sections 4.1 to 4.4; the ledger's part is pondstack.ledger.buffers. The settler compares states
only: its next round finds again whatever was lost on the bus.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import oslo_messaging
from oslo_log import log

from pondstack.controller.lending.escrow import EscrowKeeper
from pondstack.controller.lending.inventory import LendingInventory
from pondstack.controller.lending.sealing import EscrowSealer
from pondstack.domain.causes import Cause
from pondstack.domain.errors import AgentUnavailable, NotLeader, PondError, Unavailable
from pondstack.domain.lending import IN_USE, Buffer, LenderKind, waits_for_its_key
from pondstack.domain.requests import BorrowRequest
from pondstack.domain.states import SliceState
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_lending_api import AgentLendingAPI

LOG = log.getLogger(__name__)

T = TypeVar("T")

ABANDONED_SECONDS = 90.0
"""The default of [controller] assign_timeout_seconds."""


class Lenders:
    """Gives buffers to borrowers. `settle` wakes the settler; `sealer` opens what is in escrow."""

    def __init__(
        self,
        ledger: Ledger,
        agents: AgentLendingAPI,
        settle: Callable[[], object],
        sealer: EscrowSealer | None = None,
    ) -> None:
        self._ledger, self._agents, self.settle = ledger, agents, settle
        self._escrow = EscrowKeeper(ledger, agents, sealer, lambda _items: set())

    def borrow(
        self,
        operation_id: str,
        request: BorrowRequest,
        buffer_mib: int,
        claimed_mib: int | None = None,
        held_back: bool = False,
    ) -> dict[str, Any]:
        """Give buffers of `buffer_mib` to a borrower, with their keys (GS_alloc_ext, GS_alloc_swap).

        `claimed_mib`, `held_back`: see Ledger.borrow.

        Returns what Ledger.borrow does and "lenders": {host: {"incarnation", "ticket", "keys"}}. Lenders that may sleep
        have made their keys beforehand, which are disclosed now. A repetition gets the same, but for what went back
        since. When there are not all keys all goes back; raises Unavailable then, and what Ledger.borrow raises.
        """
        keys_known = self._escrow.sealing_keys
        effect = self._ledger.loans.borrow(operation_id, request, buffer_mib, claimed_mib, keys_known, held_back)
        uuid = effect["allocation_uuid"]
        mine = {(item.incarnation, item.index): item for item in self._ledger.buffers.find() if _may_have(item, uuid)}
        given = [item for item in effect["buffers"] if (item["incarnation"], item["index"]) in mine]
        wanted: dict[str, list[Buffer]] = {}
        for item in (mine[item["incarnation"], item["index"]] for item in given):
            wanted.setdefault(item.lender, []).append(item)
        try:
            keys = {lender: self._keys(buffers, request.host) for lender, buffers in wanted.items()}
        except PondError as error:
            # Not given back here: another attempt of this operation may have answered the host at this moment.
            self._ledger.loans.release_unacknowledged(uuid, f"a lender made no keys: {error.message}")
            self.settle()
            raise
        return {"allocation_uuid": uuid, "buffers": given, "lenders": keys}

    def missing(self, request: BorrowRequest, buffer_mib: int) -> int:
        """Return how many buffers a guaranteed loan lacks now."""
        return self._ledger.loans.missing(request, buffer_mib, self._escrow.sealing_keys)

    def make_way(
        self, request: BorrowRequest, buffer_mib: int, lends: Mapping[str, int], reason: str
    ) -> tuple[int, int]:
        """Have best-effort loans give way to a guaranteed one; see Loans."""
        return self._ledger.loans.make_way(request, buffer_mib, lends, reason, self._escrow.sealing_keys)

    def give_back(
        self, operation_id: str, allocation_uuid: str, host: str, only: Sequence[tuple[str, int]] | None = None
    ) -> None:
        """Note that a borrower does not use buffers any more; the settler has their lenders end the keys."""
        if self._ledger.loans.give_back(operation_id, allocation_uuid, host, only):
            self.settle()

    def reclaim(self, operation_id: str, host: str, mib: int) -> list[int]:
        """Return the buffers that a lender may withdraw now; it asks again for the others, which are taken back."""
        free = self._ledger.buffers.reclaim(operation_id, host, mib)
        self.settle()
        return free

    def _keys(self, buffers: Sequence[Buffer], borrower: str) -> dict[str, Any]:
        """Return the keys of one lender's buffers: made now, or of the escrow."""
        escrowed = [item for item in buffers if item.escrowed]
        parts = [self._escrow.disclosed(borrower, escrowed)] if escrowed else []
        others = [item for item in buffers if not item.escrowed]
        if shared := [item for item in others if item.heir is not None]:
            parts.append(self._export(shared, borrower, self._agents.share))
        if own := [item for item in others if item.heir is None]:
            parts.append(self._export(own, borrower, self._agents.export))
        return {**parts[0], "keys": {index: key for part in parts for index, key in part["keys"].items()}}

    def _export(self, buffers: Sequence[Buffer], borrower: str, verb: Callable[..., dict[str, Any]]) -> dict[str, Any]:
        lender, made = buffers[0].lender, _generations(buffers)
        answer = call_agent(
            lender,
            lambda: verb(
                lender,
                epoch=self._ledger.epoch,
                indexes=list(made),
                borrower=borrower,
                incarnation=buffers[0].incarnation,
                generations=made,
            ),
        )
        return {name: answer[name] for name in ("incarnation", "ticket", "keys")}


class BufferSettler:
    """Moves buffers on: borrowers give RELEASING ones back, lenders end the keys of SANITIZING and fenced ones.

    The keys of free buffers of a host that lends as a zombie go to the escrow while the host is awake; once it is awake
    again, it ends those that nobody uses. A borrower that has not acknowledged a buffer after
    `abandoned_seconds()` must give it back.
    """

    def __init__(
        self,
        ledger: Ledger,
        agents: AgentLendingAPI,
        inventory: LendingInventory | None = None,
        stopping: Callable[[], bool] = lambda: False,
        abandoned_seconds: Callable[[], float] = lambda: ABANDONED_SECONDS,
        sealer: EscrowSealer | None = None,
    ) -> None:
        self._abandoned_seconds = abandoned_seconds
        self._escrow = EscrowKeeper(ledger, agents, sealer, self._revoke)
        self._ledger, self._agents, self._inventory, self._stopping = ledger, agents, inventory, stopping

    def run(self) -> None:
        """Do one round; the next one tries again what was not answered."""
        self._ledger.loans.release_abandoned(self._abandoned_seconds())
        items = self._ledger.buffers.find()
        for held in _groups(items, lambda item: item.state is SliceState.RELEASING or _lost(item)):
            self._attempt(held, self._take_back)
        for dirty in _groups(items, lambda item: item.state is SliceState.SANITIZING and _awake(item)):
            self._attempt(dirty, self._sanitize)
        for aside in _groups(items, lambda item: waits_for_its_key(item) and _awake(item)):
            self._attempt(aside, self._free_revoked)
        for left in _groups(items, lambda item: _free(item) and _awake(item) and _has_keys(item)):
            self._attempt(left, self._end_keys)
        for used in _groups(items, lambda item: item.state in IN_USE and _awake(item) and _others_have_keys(item)):
            self._attempt(used, self._end_others_keys)
        self._escrow.tidy()
        for mine in self._escrow.work(items):
            self._attempt(mine, self._escrow.fill)
        if self._inventory is not None and not self._stopping():
            self._inventory.write()

    def _end_keys(self, left: Sequence[Buffer]) -> None:
        """Have a lender that is awake end the keys of free buffers: those in escrow, and those it has disclosed."""
        gone = left if left[0].escrowed else self._forgotten(left)
        dead = self._revoke(gone)
        ended = {index: number for index, number in _generations(gone).items() if index in dead}
        self._ledger.escrow.end(left[0].lender, left[0].incarnation, ended)

    def _forgotten(self, promised: Sequence[Buffer]) -> list[Buffer]:
        """Return what a borrower has no keys of any more, of buffers that the former release promised to it."""
        borrower = promised[0].promised_to or ""
        try:
            gone = self._agents.give_back(
                borrower,
                epoch=self._ledger.epoch,
                allocation_uuid="",
                lender=promised[0].lender,
                incarnation=promised[0].incarnation,
                indexes=[item.index for item in promised],
            )
        except (PondError, oslo_messaging.MessagingTimeout):
            if not self._ledger.hosts.is_fenced(borrower):
                raise
            return list(promised)  # an operator said that it is dead: its keys end without its word
        return [item for item in promised if item.index in gone]

    def _end_others_keys(self, used: Sequence[Buffer]) -> None:
        """Have a lender that is awake end the keys that were in escrow of buffers which are somebody's by now."""
        lender, incarnation, generations = used[0].lender, used[0].incarnation, _generations(used)
        self._agents.export(
            lender,
            epoch=self._ledger.epoch,
            indexes=list(generations),
            borrower=used[0].host or "",
            incarnation=incarnation,
            generations=generations,
        )
        self._ledger.escrow.end(lender, incarnation, generations, used=True)

    def _sanitize(self, dirty: Sequence[Buffer]) -> None:
        self._ledger.buffers.sanitized(dirty[0].lender, dirty[0].incarnation, self._revoke(dirty))

    def _free_revoked(self, aside: Sequence[Buffer]) -> None:
        self._ledger.buffers.free_revoked(aside[0].lender, aside[0].incarnation, self._revoke(aside))

    def _revoke(self, items: Sequence[Buffer]) -> set[int]:
        """Have a lender end all keys of buffers so far; returns the buffers that have none now, and are zeroed.

        What its device did not end is not done: such a buffer is set aside, and asked for again by each round.
        """
        if not items:
            return set()
        lender, ended = items[0].lender, _generations(items)
        dead = self._agents.revoke(
            lender,
            epoch=self._ledger.epoch,
            indexes=list(ended),
            incarnation=items[0].incarnation,
            generations=ended,
        )
        done = set(dead) & set(ended)
        if done != set(ended):
            self._set_aside(lender, items[0].incarnation, set(ended) - done)
        return done

    def _set_aside(self, lender: str, incarnation: str, alive: set[int]) -> None:
        # The key of a later owner is alive, too, and an agent of before tells no reasons: those go on waiting.
        try:
            told = self._agents.get_lending(lender)
        except (PondError, oslo_messaging.MessagingTimeout) as error:
            LOG.debug("Why keys of buffers %s of lender %s live is asked again: %s", sorted(alive), lender, error)
            return
        failed = {int(index): reason for index, reason in (told.get("failed") or {}).items()}
        aside = {index: failed[index] for index in sorted(alive & failed.keys())}
        if aside and told.get("incarnation") == incarnation:
            LOG.error("The device of lender %s did not end the keys of buffers %s", lender, list(aside))
            self._ledger.buffers.quarantine_unrevoked(lender, incarnation, aside)

    def _take_back(self, held: Sequence[Buffer]) -> None:
        take_back(self._ledger, self._agents, held[0].host or "", held[0].allocation_uuid or "", held)

    def _attempt(self, items: Sequence[Buffer], work: Callable[[Sequence[Buffer]], None]) -> None:
        if self._stopping():
            return
        try:
            call_agent(items[0].lender, partial(work, items))
        except NotLeader:
            raise
        except Unavailable as error:
            LOG.debug("Buffers of lender %s wait: %s", items[0].lender, error)
        except PondError as error:
            LOG.warning("%d buffers of lender %s wait: %s", len(items), items[0].lender, error)


def take_back(ledger: Ledger, agents: AgentLendingAPI, host: str, allocation_uuid: str, held: Sequence[Buffer]) -> None:
    """Have a borrower let go of what a loan has, or is to inherit, of one life of a lender; what it does not, stays."""
    indexes, incarnation = [item.index for item in held], held[0].incarnation
    done = agents.give_back(
        host,
        epoch=ledger.epoch,
        allocation_uuid=allocation_uuid,
        lender=held[0].lender,
        incarnation=incarnation,
        indexes=indexes,
    )
    if only := [(incarnation, index) for index in sorted(set(done) & set(indexes))]:
        ledger.loans.give_back(str(uuid4()), allocation_uuid, host, only)


def call_agent(host: str, call: Callable[[], T]) -> T:
    """Call an agent; raises AgentUnavailable when it does not answer."""
    try:
        return call()
    except oslo_messaging.MessagingTimeout:
        raise AgentUnavailable(f"an agent does not answer; look at it on host {host}, or at its borrowers'") from None


def _may_have(item: Buffer, allocation_uuid: str) -> bool:
    """Return whether an allocation may have a buffer's key: not while the buffer is taken back."""
    return allocation_uuid in (item.allocation_uuid, item.heir) and item.state in IN_USE


def _others_have_keys(item: Buffer) -> bool:
    """Return whether others than a buffer's owner have keys of it, and are not to have them, as its heir is."""
    return item.heir is None and (item.escrowed or item.shared)


def _generations(items: Iterable[Buffer]) -> dict[int, int]:
    return {item.index: item.generation for item in items}


def _lost(item: Buffer) -> bool:
    return item.cause is Cause.LENDER_LOST


def _free(item: Buffer) -> bool:
    return item.state is SliceState.FREE


def _awake(item: Buffer) -> bool:
    return item.kind is not LenderKind.ZOMBIE


def _has_keys(item: Buffer) -> bool:
    return item.escrowed or item.promised_to is not None


def _groups(items: Iterable[Buffer], wanted: Callable[[Buffer], bool]) -> list[list[Buffer]]:
    """Return the buffers that are wanted, grouped by lender and borrower: one call is for one group."""
    found: dict[tuple[str, ...], list[Buffer]] = {}
    for item in items:
        if wanted(item):
            owner = (item.host or "", item.allocation_uuid or "", item.promised_to or "", str(item.escrowed))
            key = (item.lender, item.incarnation, *owner)
            found.setdefault(key, []).append(item)
    return [found[key] for key in sorted(found)]
