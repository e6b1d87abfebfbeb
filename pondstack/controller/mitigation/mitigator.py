"""Goes round the open mitigations, and takes each as far as it goes now; begins and aborts them.

What is written down before what: that a copy is tried, before its command; any other step, once it is done. So a leader
that is killed in between does again what changes nothing when it is done twice.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any
from uuid import uuid4

from oslo_log import log

from pondstack.clients.nova import Nova
from pondstack.clients.placement import Placement
from pondstack.controller.mitigation.actor import Actor
from pondstack.controller.mitigation.observer import Observer, seen_server
from pondstack.domain.errors import BadRequest, Conflict, NotFound, NotLeader, PondError
from pondstack.domain.mitigation import Mitigation, MitigationMethod, MitigationState, MitigationTrigger
from pondstack.domain.mitigation_step import Act, Limits, Step, decide
from pondstack.domain.model import Allocation, Extent
from pondstack.domain.purpose import Purpose
from pondstack.domain.states import OWNED
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.mitigations import Overtaken
from pondstack.ledger.records import AllocationRecord
from pondstack.rpc.agent_api import AgentAPI

LOG = log.getLogger(__name__)

MOST_STEPS = 8
"""In one round; the next one goes on."""


class Mitigator:
    """One leader's. run() is for one thread, the others are thread-safe.

    `allocations` gives those of a consumer; `changed` hears of each mitigation that is in another state, `corrected` of
    each server whose split was marked, or put back; `limits`, `most`: [mitigation] now, the latter per host and rack.
    """

    def __init__(
        self,
        ledger: Ledger,
        nova: Nova,
        placement: Placement,
        agents: AgentAPI,
        allocations: Callable[[str], Sequence[AllocationRecord]],
        *,
        limits: Callable[[], Limits],
        most: Callable[[], tuple[int, int]],
        executor: Executor,
        changed: Callable[[Mitigation], object] = lambda _item: None,
        corrected: Callable[[str], object] = lambda _uuid: None,
        wake: Callable[[], object] = lambda: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ledger, self._nova, self._allocations = ledger, nova, allocations
        self._observer = Observer(nova, placement, agents, allocations)
        self._actor = Actor(ledger, nova, placement, agents)
        self._limits, self._most, self._executor = limits, most, executor
        self._changed, self._corrected, self._wake, self._stopping = changed, corrected, wake, stopping

    def begin(
        self,
        consumer_uuid: str,
        *,
        trigger: MitigationTrigger,
        forced: bool = False,
        method: MitigationMethod | None = None,
        evidence: Mapping[str, Any] | None = None,
        operation_id: str | None = None,
    ) -> Mitigation:
        """Begin to mitigate a server; it goes on in the background. A repetition of the operation begins nothing.

        `method` None: by copy, and by migration where its host has no room; `forced`: although it was mitigated before.
        Raises NotFound, Conflict, Unavailable.
        """
        operation = operation_id or str(uuid4())
        known = self._ledger.mitigations.begun(operation)
        if known is None:
            try:
                self._ledger.mitigations.check(consumer_uuid, forced=forced)
                item = self._mitigable(consumer_uuid)
            except Conflict:
                # The same operation may have begun it since we looked: its client did not wait for Nova.
                known = self._ledger.mitigations.begun(operation)
                if known is None:
                    raise
            else:
                known = self._ledger.mitigations.begin(
                    operation, item, trigger=trigger, forced=forced, method=method, evidence=dict(evidence or {})
                )
                LOG.info("Mitigation %s of server %s begins on host %s", known, consumer_uuid, item.host)
                self._wake()
        begun = self._ledger.mitigations.get(known)
        if begun.consumer_uuid != consumer_uuid:
            raise BadRequest(f"operation {operation} was used for another server; make a new id")
        return begun

    def abort(self, consumer_uuid: str, operation_id: str | None = None) -> Mitigation:
        """Have the open mitigation of a server undone, in the background. Raises NotFound, Conflict."""
        uuid = self._ledger.mitigations.abort(operation_id or str(uuid4()), consumer_uuid)
        self._wake()
        return self._ledger.mitigations.get(uuid)

    def _mitigable(self, consumer_uuid: str) -> Allocation:
        """Return what a server has of a pool; raises NotFound, Conflict where it cannot be mitigated now."""
        mine = [record for record in self._allocations(consumer_uuid) if record.state in OWNED]
        if not mine:
            raise NotFound(f"server {consumer_uuid} has no pool memory")
        found = self._nova.server(consumer_uuid)
        if found is None:
            raise NotFound(f"Nova knows no server {consumer_uuid}")
        server = seen_server(found)
        if server.busy or len(mine) > 1:
            raise Conflict(f"Nova works on server {consumer_uuid} ({server.busy or 'it is moved'}); try again later")
        record = mine[0]
        if record.host != server.host:
            raise Conflict(
                f"server {consumer_uuid} runs on {server.host} and holds slices on {record.host}; audit that"
            )
        return _allocation(record)

    def run(self) -> bool:
        """Do one round; returns whether any is open. Each goes by itself: what one waits for is said with it."""
        unended = self._ledger.mitigations.unended()
        turns = self._turns(unended)
        futures = [self._executor.submit(self._further, item, item.uuid in turns) for item in unended]
        for future in futures:
            future.result()
        return bool(unended)

    def _turns(self, unended: Sequence[Mitigation]) -> set[str]:
        """Return those that may go on: all that have begun, and of the others as many as there may be."""
        per_host, per_rack = self._most()
        begun = [item for item in unended if item.state is not MitigationState.CLAIMING]
        hosts, turns = Counter(item.host for item in begun), {item.uuid for item in begun}
        for item in unended:
            if item.uuid not in turns and hosts[item.host] < per_host and len(turns) < per_rack:
                hosts[item.host] += 1
                turns.add(item.uuid)
        return turns

    def _further(self, item: Mitigation, turn: bool) -> None:
        try:
            for _ in range(MOST_STEPS):
                after = self._step(item, turn)
                if self._stopping() or after.state is item.state:
                    return
                item = self._ledger.mitigations.get(item.uuid)
                if not item.is_open:  # by this step, or the next leader has ended it already
                    return
        except NotLeader:
            raise
        except Overtaken as error:
            LOG.debug("Mitigation %s is looked at again: %s", item.uuid, error)
        except PondError as error:
            LOG.debug("Mitigation %s waits: %s", item.uuid, error)
            self._note(item, error.message)

    def _step(self, item: Mitigation, turn: bool) -> Mitigation:
        seen = self._observer.look(item, turn=turn)
        step = decide(item, seen, self._limits())
        left = seen.copy.left_mib if seen.copy is not None and seen.copy.mine else None
        if step.act is Act.COPY:
            item = self._advance(item, step._replace(reason=item.reason), left)
            step = step._replace(again=False)
        return self._advance(item, self._actor.act(item, step, seen), left)

    def _advance(self, item: Mitigation, step: Step, left_mib: int | None) -> Mitigation:
        after = self._ledger.mitigations.advance(item, step, left_mib=left_mib)
        if after.work.corrected is not item.work.corrected:
            self._corrected(item.consumer_uuid)
        if after.state is not item.state:
            LOG.info("Mitigation %s of server %s is %s %s", item.uuid, item.consumer_uuid, after.state, after.reason)
            self._changed(after)
        return after

    def _note(self, item: Mitigation, reason: str) -> None:
        """Write down what it waits for."""
        try:
            present = self._ledger.mitigations.get(item.uuid)
            if present.is_open:
                self._ledger.mitigations.advance(present, Step(Act.WAIT, present.state, reason))
        except (Overtaken, NotFound) as error:
            LOG.debug("Mitigation %s has ended meanwhile: %s", item.uuid, error)


def _allocation(record: AllocationRecord) -> Allocation:
    return Allocation(
        record.uuid,
        record.consumer_uuid,
        record.host,
        record.pool_uuid,
        tuple(Extent(item["start"], item["count"]) for item in record.extents),
        record.slice_mib,
        record.guest_mib,
        record.project_id,
        record.user_id,
        Purpose(record.purpose),
    )
