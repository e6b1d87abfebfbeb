"""What the leader does so that no memory is sold twice: claim, lend, read back, admit (pondstack.domain.admission).

All of it compares states: the ledger's lends and buffers, and Placement. The next round, or the next leader, goes on
wherever the last one ended.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from oslo_log import log

from pondstack.clients.placement import Placement
from pondstack.controller.lending.lenders import call_agent
from pondstack.domain.admission import (
    LENT_CLASS,
    MEMORY_CLASS,
    HostMemory,
    Lend,
    LendStage,
    Verdict,
    claims,
    consumers,
    judge,
    mark,
)
from pondstack.domain.causes import Cause
from pondstack.domain.errors import BadRequest, HostUnusable, NotAligned, NotLeader, OperationMismatch, PondError
from pondstack.domain.lending import Buffer
from pondstack.domain.rack import RackView
from pondstack.domain.states import SliceState
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_lending_api import AgentLendingAPI

LOG = log.getLogger(__name__)

_REFUSALS = (BadRequest, HostUnusable, NotAligned, OperationMismatch)
"""With these a host says that it will never lend so."""


class Claims:
    """What we claim of hosts' DRAM in Placement, and what else is there. Raises Unavailable."""

    def __init__(self, placement: Placement, still: Callable[[], object] = lambda: None) -> None:
        self._placement, self._still = placement, still

    def memory(self, host: str) -> HostMemory | None:
        """Return a host's DRAM as Placement has it, None when Nova has not told it.

        The inventories come first: what is claimed after them was admitted beside them.
        """
        provider = self._placement.host_provider(host)
        records = self._placement.inventories(provider) if provider else {}
        dram, lent = records.get(MEMORY_CLASS), records.get(LENT_CLASS)
        if provider is None or dram is None:
            return None
        ours, held = set(consumers(host)), self._placement.allocations_of(provider) or {}
        used = sum(amounts.get(MEMORY_CLASS, 0) for consumer, amounts in held.items() if consumer not in ours)
        told = (lent.total, lent.max_unit) if lent else (0, 0)
        return HostMemory(dram.total, dram.reserved, dram.allocation_ratio, dram.max_unit, used, *told)

    def claim(self, host: str, memory: HostMemory, mib: int) -> bool:
        """Claim what `mib` of a host's memory are; False: instances have it."""
        provider = self._placement.host_provider(host)
        amounts = claims(host, memory, mib)
        if not amounts:
            return True
        return provider is not None and self._placement.claim(provider, MEMORY_CLASS, amounts, still=self._still)

    def drop(self, host: str) -> None:
        """Claim nothing of a host any more."""
        provider = self._placement.provider_by_name(host)
        held = self._placement.allocations_of(provider) if provider else None
        for consumer in sorted(set(consumers(host)) & set(held or ())):
            self._still()
            self._placement.drop_claim(consumer)


class Admission:
    """Has hosts lend, and lets be borrowed what Placement says has left them. run() is for one thread.

    `settled` is called when there is more to borrow; `view` reads the hosts, whose claims a new leader looks through.
    """

    def __init__(
        self,
        ledger: Ledger,
        agents: AgentLendingAPI,
        placement: Placement,
        view: Callable[[], RackView],
        settled: Callable[[], object],
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ledger, self._agents, self._view = ledger, agents, view
        self._claims = Claims(placement, ledger.renew)
        self._settled, self._stopping = settled, stopping
        self._swept: set[str] = set()
        self._ended: Counter[str] = Counter()

    def forget(self) -> None:
        """Have the next run look for claims that no lend needs."""
        self._swept = set()

    def run(self) -> None:
        """Do one round: each host by itself, and what one of them waits for is said with it."""
        lends = {lend.host: lend for lend in self._ledger.lends.find()}
        waiting = {item.lender for item in self._ledger.buffers.find() if not item.admitted}
        self._swept -= lends.keys()  # a lend that is ended by others leaves its claim
        for host in sorted(lends.keys() | waiting):
            self._attempt(host, lends.get(host))
        for host in self._view().hosts.keys() - self._swept - lends.keys():
            if not self._stopping():
                self._claims.drop(host)
                self._swept.add(host)

    def _attempt(self, host: str, lend: Lend | None) -> None:
        if self._stopping():
            return
        try:
            self._step(host, lend)
        except NotLeader:
            raise
        except PondError as error:
            LOG.debug("Lending of host %s goes on later: %s", host, error)
            if lend is not None:
                self._wait(lend, error.message)

    def _step(self, host: str, lend: Lend | None) -> None:
        if lend is not None and lend.stage is LendStage.WAITING:
            lend = self._claim(lend)
        if lend is not None and lend.stage is LendStage.LENDING and not self._registered(lend):
            return
        if lend is None or lend.stage is not LendStage.WAITING:
            self._admit(host, lend)

    def _claim(self, lend: Lend) -> Lend | None:
        """Claim what is to leave the host, beside what is reserved for what it lends already."""
        memory = self._claims.memory(lend.host)
        if memory is None:
            return self._wait(lend, f"Nova does not know host {lend.host}: start nova-compute there")
        lent_mib = sum(item.size_mib for item in _of_host(self._ledger, lend.host))
        missing = lend.mib - min(memory.lent_mib, lent_mib)
        if self._claims.claim(lend.host, memory, missing):
            return self._ledger.lends.step(lend, LendStage.LENDING)
        free = max(int((memory.capacity_mib - memory.used_mib) / memory.ratio), 0)
        return self._wait(lend, f"{missing} MiB are to leave the host, and instances leave {free} MiB: move some away")

    def _registered(self, lend: Lend) -> bool:
        """Have the host register the memory; returns whether it has, as far as it can."""
        asked: dict[str, Any] = {"operation_id": lend.operation_id, "mib": lend.mib, "kind": str(lend.kind)}
        try:
            told = call_agent(lend.host, lambda: self._agents.lend(lend.host, epoch=self._ledger.epoch, **asked))
        except _REFUSALS as error:
            self._finish(lend.host, replace(lend, reason=error.message), _of_host(self._ledger, lend.host))
            return False
        if told["state"] != "done":
            return False
        if told["reason"]:
            self._wait(lend, str(told["reason"]))
        return True

    def _admit(self, host: str, lend: Lend | None) -> None:
        mine = _of_host(self._ledger, host)
        new = [item for item in mine if not item.admitted]
        if not new:
            self._finish(host, lend, mine)
            return
        memory = self._claims.memory(host)
        names = mark((item.incarnation, item.index) for item in mine)
        verdict = Verdict.NOT_RESERVED if memory is None else judge(memory, sum(i.size_mib for i in mine), names)
        if verdict is Verdict.ADMITTED and (lend is None or lend.stage is not LendStage.RETURNING):
            self._claims.drop(host)
            self._ledger.buffers.admit(host, new[0].incarnation, [item.index for item in new])
            self._settled()
            self._finish(host, lend, mine)
        elif verdict is Verdict.SOLD or (lend is not None and lend.stage is LendStage.RETURNING):
            self._take_back(host, lend, new)
        elif lend is not None:
            self._wait(lend, f"nova-compute of host {host} has not reserved all in Placement yet")

    def _take_back(self, host: str, lend: Lend | None, new: Sequence[Buffer]) -> None:
        """Have the host take back what was sold although it was claimed: somebody dropped the claim."""
        if lend is not None:
            lend = self._ledger.lends.step(lend, LendStage.RETURNING, "instances got the memory while it was claimed")
        back = [item for item in new if item.state is SliceState.FREE]
        if back:
            names = mark((item.incarnation, item.index) for item in back)
            # What a device did not let go of may come free after its reclaim has ended: that takes a new one.
            operation_id = str(uuid5(NAMESPACE_OID, f"pondstack sold on {host}: {names} {self._ended[host]}"))
            mib = sum(item.size_mib for item in back)
            LOG.warning("Host %s takes %d MiB back: instances have claimed them", host, mib)
            told = call_agent(
                host,
                lambda: self._agents.reclaim(host, epoch=self._ledger.epoch, operation_id=operation_id, mib=mib),
            )
            if told["state"] == "done":
                self._ended[host] += 1

    def _finish(self, host: str, lend: Lend | None, mine: Sequence[Buffer]) -> None:
        self._claims.drop(host)
        if lend is not None:
            lent_mib = sum(item.size_mib for item in mine)
            self._ledger.lends.end(lend, lent_mib, lend.reason if lent_mib < lend.mib else "")

    def _wait(self, lend: Lend, reason: str) -> Lend | None:
        return self._ledger.lends.step(lend, lend.stage, reason)


def _of_host(ledger: Ledger, host: str) -> list[Buffer]:
    """Return the buffers that a host has: of a lost life there are only those that somebody has not let go of."""
    return [item for item in ledger.buffers.find(host) if item.cause is not Cause.LENDER_LOST]
