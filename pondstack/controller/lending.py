"""What the leader does with memory that hosts lend: keys for borrowers, and what follows once somebody lets go.

Zombieland (EuroSys'18), sections 4.1 to 4.4; the ledger's part is pondstack.db.lending. The settler compares nothing
but states: whatever was lost on the bus is found again in its next round.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol
from uuid import uuid4

import oslo_messaging
from oslo_log import log

from pondstack.db.ledger import Ledger
from pondstack.db.lending import BorrowRequest
from pondstack.domain.errors import AgentUnavailable, NotLeader, PondError
from pondstack.domain.lending import LENDER_LOST, Buffer, LenderKind
from pondstack.domain.states import SliceState

LOG = log.getLogger(__name__)


class LendingAgents(Protocol):
    """The controller's commands to agents (pondstack.rpc.agent_api.AgentAPI). Idempotent, guarded by the epoch."""

    def export(
        self, host: str, *, epoch: int, indexes: Sequence[int], borrower: str, incarnation: str
    ) -> Mapping[str, Any]:
        """Have a lender make keys; {"incarnation", "ticket", "keys": {index: key}}."""

    def revoke(self, host: str, *, epoch: int, indexes: Sequence[int], incarnation: str) -> list[int]:
        """Have a lender end keys; which buffers have none now, and are fresh."""

    def give_back(
        self, host: str, *, epoch: int, allocation_uuid: str, lender: str, incarnation: str, indexes: Sequence[int]
    ) -> list[int]:
        """Have a borrower let go of buffers (US_reclaim); which of them it does not use any more."""


class Lenders:
    """Gives buffers out. `settle`: have the settler look soon."""

    def __init__(self, ledger: Ledger, agents: LendingAgents, settle: Callable[[], object]) -> None:
        self._ledger, self._agents, self._settle = ledger, agents, settle

    def borrow(self, operation_id: str, request: BorrowRequest) -> dict[str, Any]:
        """Give buffers to a borrower, with the keys of them (GS_alloc_ext, GS_alloc_swap).

        Returns what Ledger.borrow does and "lenders": {host: {"incarnation", "ticket", "keys"}}, without those that
        sleep: their keys were opened beforehand. A repetition gets the same. When a lender makes no keys all goes
        back; raises AgentUnavailable then, and what Ledger.borrow raises.
        """
        effect = self._ledger.borrow(operation_id, request)
        uuid = effect["allocation_uuid"]
        wanted: dict[tuple[str, str], list[int]] = {}
        awake = {item.lender for item in self._ledger.buffers() if item.kind is not LenderKind.ZOMBIE}
        for item in effect["buffers"]:
            if item["lender"] in awake:
                wanted.setdefault((item["lender"], item["incarnation"]), []).append(item["index"])
        try:
            keys = {lender: self._export(lender, life, at, request.host) for (lender, life), at in wanted.items()}
        except PondError:
            # The host has not heard of it. Its keys, where some were made, die before anybody else gets the buffers.
            self._ledger.give_back(str(uuid4()), uuid, request.host)
            self._settle()
            raise
        return {"allocation_uuid": uuid, "buffers": effect["buffers"], "lenders": keys}

    def give_back(
        self, operation_id: str, allocation_uuid: str, host: str, only: Sequence[tuple[str, int]] | None = None
    ) -> None:
        """A borrower uses buffers no more; their lenders are told soon."""
        if self._ledger.give_back(operation_id, allocation_uuid, host, only):
            self._settle()

    def reclaim(self, operation_id: str, host: str, mib: int) -> list[int]:
        """A lender wants memory back; which buffers it may withdraw now. It asks again for the others."""
        free = self._ledger.reclaim_buffers(operation_id, host, mib)
        self._settle()
        return free

    def _export(self, lender: str, incarnation: str, indexes: Sequence[int], borrower: str) -> dict[str, Any]:
        answer = _asked(
            lender,
            lambda: self._agents.export(
                lender, epoch=self._ledger.epoch, indexes=indexes, borrower=borrower, incarnation=incarnation
            ),
        )
        return dict(answer)


class Settler:
    """Brings buffers on: RELEASING ones are asked of their borrowers, SANITIZING ones of their lenders."""

    def __init__(self, ledger: Ledger, agents: LendingAgents, stopping: Callable[[], bool] = lambda: False) -> None:
        self._ledger, self._agents, self._stopping = ledger, agents, stopping

    def run(self) -> None:
        """One round; whoever does not answer is asked again in the next."""
        items = self._ledger.buffers()
        for (lender, incarnation), dirty in _groups(items, SliceState.SANITIZING, lambda item: item.incarnation):
            # A zombie sleeps: its buffers wait until it is awake.
            if dirty[0].kind is not LenderKind.ZOMBIE and not self._stopping():
                self._quietly(lender, partial(self._freshen, lender, incarnation, dirty))
        back = [item for item in items if item.state is SliceState.RELEASING or _lost(item)]
        for (lender, uuid), held in _groups(back, None, lambda item: item.allocation_uuid or ""):
            if not self._stopping():
                host = held[0].host or ""
                self._quietly(host, partial(self._ask_back, held, lender, uuid))

    def _freshen(self, lender: str, incarnation: str, dirty: Sequence[Buffer]) -> None:
        indexes = [item.index for item in dirty]
        done = self._agents.revoke(lender, epoch=self._ledger.epoch, indexes=indexes, incarnation=incarnation)
        self._ledger.freshened(lender, incarnation, set(done) & set(indexes))

    def _ask_back(self, held: Sequence[Buffer], lender: str, allocation_uuid: str) -> None:
        for incarnation in sorted({item.incarnation for item in held}):
            mine = [item for item in held if item.incarnation == incarnation]
            host, indexes = mine[0].host or "", [item.index for item in mine]
            done = self._agents.give_back(
                host,
                epoch=self._ledger.epoch,
                allocation_uuid=allocation_uuid,
                lender=lender,
                incarnation=incarnation,
                indexes=indexes,
            )
            only = [(incarnation, index) for index in sorted(set(done) & set(indexes))]
            if only:
                self._ledger.give_back(str(uuid4()), allocation_uuid, host, only)

    def _quietly(self, host: str, work: Callable[[], None]) -> None:
        try:
            _asked(host, work)
        except NotLeader:
            raise
        except AgentUnavailable as error:
            LOG.debug("Lent memory waits: %s", error)
        except PondError as error:
            LOG.warning("Lent memory of or on host %s waits: %s", host, error)


def _asked(host: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except oslo_messaging.MessagingTimeout:
        raise AgentUnavailable(f"the agent of host {host} does not answer; look at it there") from None


def _lost(item: Buffer) -> bool:
    return item.state is SliceState.QUARANTINED and item.reason.startswith(LENDER_LOST)


def _groups(
    items: Iterable[Buffer], state: SliceState | None, second: Callable[[Buffer], str]
) -> list[tuple[tuple[str, str], list[Buffer]]]:
    found: dict[tuple[str, str], list[Buffer]] = {}
    for item in items:
        if state is None or item.state is state:
            found.setdefault((item.lender, second(item)), []).append(item)
    return sorted(found.items())
