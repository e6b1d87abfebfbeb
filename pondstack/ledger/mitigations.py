"""What the ledger writes of mitigations: that one begins, each step of it, that it is to be undone.

Each change of state is journaled; a step that another one overtook (an abort, a newer leader) changes nothing.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from pondstack.domain.errors import Conflict, NotFound
from pondstack.domain.mitigation import (
    ENDED,
    Mitigation,
    MitigationMethod,
    MitigationState,
    MitigationTrigger,
    Work,
    check_transition,
)
from pondstack.domain.mitigation_step import Step
from pondstack.domain.model import Allocation
from pondstack.domain.sizing import PRESENT, Split
from pondstack.ledger.moves import MOVES
from pondstack.ledger.store import RememberedSplit, Transaction
from pondstack.ledger.transactions import Transactions

BEGIN, ABORT, STEP = "mitigate", "abort_mitigation", "mitigation_step"
MOST_OF_A_REASON = 1000


class Overtaken(Conflict):
    """Somebody else has taken a mitigation further: look at it again."""


class Mitigations:
    """All mitigations. Thread-safe."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._store = transactions.store

    def unended(self) -> list[Mitigation]:
        """Return those that are open, the oldest first."""
        return self._transactions.read(self._store.mitigations.unended)

    def get(self, uuid: str) -> Mitigation:
        """Return one; raises NotFound."""
        found = self._transactions.read(lambda tx: self._store.mitigations.get(tx, uuid))
        if found is None:
            raise NotFound(f"there is no mitigation {uuid}; list the mitigations")
        return found

    def begun(self, operation_id: str) -> str | None:
        """Return the UUID of the mitigation that began by an operation, None: there is none."""
        known = self._transactions.read(lambda tx: self._store.journal.recall(tx, operation_id, BEGIN))
        return None if known is None else str(known[1]["uuid"])

    def check(self, consumer_uuid: str, *, forced: bool) -> None:
        """Raise Conflict where a guest is not to be mitigated: one is open, or was done and this is not forced."""
        self._transactions.read(lambda tx: self._check(tx, consumer_uuid, forced=forced))

    def begin(
        self,
        operation_id: str,
        item: Allocation,
        *,
        trigger: MitigationTrigger,
        forced: bool,
        method: MitigationMethod | None,
        evidence: Mapping[str, Any],
    ) -> str:
        """Begin with the guest that an allocation is of; returns its UUID, a repetition the same one.

        `method` None: by copy, and by migration where its host has no room. Raises Conflict.
        """

        def work(tx: Transaction) -> dict[str, Any]:
            self._check(tx, item.consumer_uuid, forced=forced)
            new = Mitigation(
                uuid=str(uuid5(NAMESPACE_OID, f"pondstack mitigation {operation_id}")),
                consumer_uuid=item.consumer_uuid,
                host=item.host,
                project_id=item.project_id,
                method=method or MitigationMethod.COPY,
                state=MitigationState.CLAIMING,
                trigger=trigger,
                forced=forced,
                pool_mib=item.pool_mib,
                left_mib=item.pool_mib,
                evidence=evidence,
                work=Work(item.guest_mib, method is None),
            )
            self._store.mitigations.add(tx, new)
            return {"uuid": new.uuid, "consumer": new.consumer_uuid, "host": new.host, MOVES: []}

        arguments = {"consumer_uuid": item.consumer_uuid, "forced": forced, "method": method and str(method)}
        uuid: str = self._transactions.once(operation_id, BEGIN, arguments, work)["uuid"]
        return uuid

    def _check(self, tx: Transaction, consumer_uuid: str, *, forced: bool) -> None:
        last = self._store.mitigations.latest(tx, consumer_uuid)
        if last is not None and last.is_open:
            raise Conflict(
                f"mitigation {last.uuid} of server {consumer_uuid} is {last.state} already; wait for its end"
            )
        if last is not None and last.state is MitigationState.DONE and not forced:
            raise Conflict(f"server {consumer_uuid} was mitigated before ({last.uuid}); force it to do that once more")

    def abort(self, operation_id: str, consumer_uuid: str) -> str:
        """Have the open mitigation of a guest undone; returns its UUID. Raises NotFound, Conflict."""

        def work(tx: Transaction) -> dict[str, Any]:
            item = self._store.mitigations.latest(tx, consumer_uuid)
            if item is None or not item.is_open:
                raise NotFound(f"no mitigation of server {consumer_uuid} is under way")
            if not item.abortable:
                raise Conflict(f"mitigation {item.uuid} is {item.state}: it can only go on to its end")
            changed = replace(
                item,
                state=MitigationState.UNDOING,
                reason="aborted by an operator",
                work=replace(item.work, ending=str(MitigationState.ABORTED)),
            )
            moved = item.state is not MitigationState.UNDOING
            self._store.mitigations.change(tx, changed, moved=moved, ended=False)
            return {"uuid": item.uuid, "consumer": consumer_uuid, MOVES: []}

        uuid: str = self._transactions.once(operation_id, ABORT, {"consumer_uuid": consumer_uuid}, work)["uuid"]
        return uuid

    def advance(self, item: Mitigation, step: Step, *, left_mib: int | None = None) -> Mitigation:
        """Take a step that was decided for `item`; returns it as it is then.

        With another state it is journaled. Raises Overtaken, IllegalTransition.
        """
        check_transition(item.state, step.state)
        after = _after(item, step, left_mib)

        def work(tx: Transaction) -> Mitigation:
            present = self._store.mitigations.get(tx, item.uuid)
            if present is None or (present.state, present.work, present.method) != (item.state, item.work, item.method):
                raise Overtaken(f"mitigation {item.uuid} is {present and present.state} by now")
            self._mark(tx, item, step)
            moved = after.state is not item.state
            self._store.mitigations.change(tx, after, moved=moved, ended=after.state in ENDED)
            if moved:
                effect = {"uuid": item.uuid, "from": str(item.state), "to": str(after.state), MOVES: []}
                self._transactions.note(tx, STEP, {"uuid": item.uuid}, {**effect, "reason": after.reason})
            return after

        return after if after == item else self._transactions.write(work)

    def _mark(self, tx: Transaction, item: Mitigation, step: Step) -> None:
        if step.correct:
            split = Split(item.work.guest_mib - item.pool_mib, item.pool_mib, PRESENT, 1.0, "what it had")
            self._store.splits.correct(tx, RememberedSplit(item.consumer_uuid, "", split))
        elif step.correct is False and item.work.corrected:
            self._store.splits.put_back(tx, item.consumer_uuid)


def _after(item: Mitigation, step: Step, left_mib: int | None) -> Mitigation:
    work = replace(
        item.work,
        ending=item.work.ending if step.ending is None else str(step.ending),
        tries=item.work.tries + step.again,
        corrected=item.work.corrected if step.correct is None else step.correct,
        undone=step.undone or (item.work.undone and step.state is item.state),
    )
    if step.method is not None and step.method is not item.method:
        work = replace(work, tries=0)
    done = step.state in (MitigationState.RELEASING, MitigationState.UNCLAIMING, MitigationState.DONE)
    return replace(
        item,
        state=step.state,
        reason=step.reason[:MOST_OF_A_REASON],
        method=step.method or item.method,
        host=step.host or item.host,
        work=work,
        left_mib=0 if done else item.left_mib if left_mib is None else left_mib,
    )
