"""What the ledger writes of consolidation plans: that one is made, applied, cancelled, each step, and the freeze.

Each change of a plan's state is journaled; a step that another one overtook (a cancel, a newer leader) changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from pondstack.domain.consolidation_limits import ConsolidationLimits
from pondstack.domain.errors import Conflict, NotFound
from pondstack.domain.plan import (
    ENDED,
    UNDER_WAY,
    Action,
    ActionKind,
    ActionState,
    Afterwards,
    Effect,
    Plan,
    PlanKind,
    PlanState,
    PlanTrigger,
    check_transition,
)
from pondstack.ledger.moves import MOVES
from pondstack.ledger.store import Freeze, Transaction
from pondstack.ledger.transactions import Transactions

CREATE, APPLY, CANCEL, FREEZE, STEP = "create_plan", "apply_plan", "cancel_plan", "freeze_consolidation", "plan_step"
LIMIT = "limit_consolidation"
MOST_OF_A_REASON = 1000


class Overtaken(Conflict):
    """Somebody else has taken a plan further: look at it again."""


class Plans:
    """All plans. Thread-safe."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._store = transactions.store

    def unattended(self) -> list[Plan]:
        """Return those that the leader goes on with, the oldest first."""
        return self._transactions.read(self._store.plans.unattended)

    def get(self, uuid: str) -> Plan:
        """Return one; raises NotFound."""
        return self._transactions.read(lambda tx: self._get(tx, uuid))

    def _get(self, tx: Transaction, uuid: str) -> Plan:
        found = self._store.plans.get(tx, uuid)
        if found is None:
            raise NotFound(f"there is no plan {uuid}; list the plans")
        return found

    def recent(self, seconds: float) -> list[Plan]:
        """Return those that were made within so many seconds, without their actions."""
        return self._transactions.read(lambda tx: self._store.plans.recent(tx, seconds))

    def begun(self, kind: str, seconds: float) -> int:
        """Return how many actions of a kind consolidation began within so many seconds."""
        return self._transactions.read(lambda tx: self._store.plans.begun(tx, kind, seconds))

    def free_at(self, kind: str, seconds: float) -> float | None:
        """Return when the first of those that begun() counts is out of its window, by the store's clock; None: none."""
        first = self._transactions.read(lambda tx: self._store.plans.first_begun(tx, kind, seconds))
        return None if first is None else first + seconds

    def frozen(self) -> Freeze | None:
        """Return since when consolidation is frozen, and why; None: it is not."""
        return self._transactions.read(self._store.plans.frozen)

    def create(
        self,
        operation_id: str,
        kind: PlanKind,
        *,
        trigger: PlanTrigger,
        afterwards: Afterwards,
        settings: Mapping[str, Any],
        target: str = "",
        at_once: bool = False,
        inputs: Mapping[str, Any] | None = None,
    ) -> str:
        """Have a plan decided; returns its UUID, a repetition the same one.

        `at_once`: it is applied then. `inputs`: what is known before it is decided. Raises Conflict where
        consolidation is frozen and this one would move something.
        """

        def work(tx: Transaction) -> dict[str, Any]:
            if at_once:
                self._check_thawed(tx, kind)
            new = Plan(
                uuid=str(uuid5(NAMESPACE_OID, f"pondstack plan {operation_id}")),
                kind=kind,
                trigger=trigger,
                state=PlanState.DECIDING,
                actions=(),
                afterwards=afterwards,
                at_once=at_once,
                target=target,
                settings=settings,
                inputs=inputs or {},
            )
            self._store.plans.add(tx, new)
            return {"uuid": new.uuid, "kind": str(kind), "target": target, MOVES: []}

        arguments = {"kind": str(kind), "target": target, "afterwards": str(afterwards), "settings": dict(settings)}
        uuid: str = self._transactions.once(operation_id, CREATE, arguments, work)["uuid"]
        return uuid

    def decided(
        self,
        plan: Plan,
        actions: Sequence[Action],
        effect: Effect,
        *,
        inputs: Mapping[str, Any],
        left_out: Mapping[str, str],
    ) -> Plan:
        """Write down what a plan came to: proposed, or running where it is applied at once. Raises Overtaken."""
        state = PlanState.RUNNING if plan.at_once else PlanState.PROPOSED
        known = {**plan.inputs, **inputs}
        after = replace(plan, state=state, effect=effect, inputs=known, left_out=left_out, reason=plan.cause)

        def work(tx: Transaction) -> Plan:
            self._check_present(tx, plan)
            if plan.at_once:
                self._check_hosts(tx, replace(after, actions=tuple(actions)))
            self._store.plans.add_actions(tx, plan.uuid, actions)
            self._move(tx, plan, after, decided=True)
            return self._get(tx, plan.uuid)

        return self._transactions.write(work)

    def apply(self, operation_id: str, uuid: str, *, most_seconds: float) -> None:
        """Have a proposed plan carried out. `most_seconds`: how old it may be. Raises NotFound, Conflict."""

        def work(tx: Transaction) -> dict[str, Any]:
            plan = self._get(tx, uuid)
            if plan.state is not PlanState.PROPOSED:
                raise Conflict(f"plan {uuid} is {plan.state}, and only a proposed one can be applied")
            self._check_thawed(tx, plan.kind)
            if plan.age_seconds > most_seconds:
                age = f"{plan.age_seconds:.0f} s ago, more than {most_seconds:g} s"
                raise Conflict(f"plan {uuid} was decided {age}; make a new one")
            self._check_hosts(tx, plan)
            self._move(tx, plan, replace(plan, state=PlanState.RUNNING, reason=plan.cause))
            return {"uuid": uuid, MOVES: []}

        self._transactions.once(operation_id, APPLY, {"uuid": uuid}, work)

    def cancel(self, operation_id: str, uuid: str) -> None:
        """Put an end to a plan: one that runs is undone. Raises NotFound, Conflict where it has ended."""

        def work(tx: Transaction) -> dict[str, Any]:
            plan = self._get(tx, uuid)
            if plan.state in ENDED:
                raise Conflict(f"plan {uuid} is {plan.state} already")
            reason, ending = "cancelled by an operator", str(PlanState.CANCELLED)
            if plan.state is PlanState.RUNNING:
                self._move(tx, plan, replace(plan, state=PlanState.UNDOING, reason=reason, ending=ending))
            elif plan.state is not PlanState.UNDOING:
                self._move(tx, plan, replace(plan, state=PlanState.CANCELLED, reason=reason))
            return {"uuid": uuid, MOVES: []}

        self._transactions.once(operation_id, CANCEL, {"uuid": uuid}, work)

    def advance(self, plan: Plan, state: PlanState, reason: str, *, ending: str | None = None) -> Plan:
        """Take a plan to another state, or say why it waits. Raises Overtaken, IllegalTransition."""
        after = replace(
            plan, state=state, reason=reason[:MOST_OF_A_REASON], ending=plan.ending if ending is None else ending
        )
        if (after.state, after.reason, after.ending) == (plan.state, plan.reason, plan.ending):
            return plan

        def work(tx: Transaction) -> Plan:
            self._check_present(tx, plan)
            self._move(tx, plan, after)
            return self._get(tx, plan.uuid)

        return self._transactions.write(work)

    def note(self, plan: Plan, before: Action, after: Action) -> None:
        """Write down what became of an action. Raises Overtaken: the plan, or the action, is not as it was."""
        after = replace(after, reason=after.reason[:MOST_OF_A_REASON])

        def work(tx: Transaction) -> None:
            present = self._check_present(tx, plan)
            mine = next((item for item in present.actions if item.number == before.number), None)
            if mine != before:
                raise Overtaken(f"action {before.number} of plan {plan.uuid} is {mine and mine.state} by now")
            begun = after.tries > before.tries and after.state is ActionState.RUNNING
            self._store.plans.change_action(tx, plan.uuid, after, begun=begun)

        if after != before:
            self._transactions.write(work)

    def freeze(self, operation_id: str, reason: str | None) -> None:
        """Have no plan of consolidation go on or begin (`reason`), or let them (None)."""

        def work(tx: Transaction) -> dict[str, Any]:
            if reason is None:
                self._store.plans.thaw(tx)
            else:
                self._store.plans.freeze(tx, reason)
            return {"reason": reason, MOVES: []}

        self._transactions.once(operation_id, FREEZE, {"reason": reason}, work)

    def limits(self) -> ConsolidationLimits:
        """Return what an operator has set in place of options."""
        return self._transactions.read(self._store.plans.limits)

    def set_limits(self, operation_id: str, changes: Mapping[str, Any]) -> None:
        """Set what `changes` names, None: let the option hold again. Raises BadRequest."""

        def work(tx: Transaction) -> dict[str, Any]:
            return {"set": self._store.plans.set_limits(tx, changes).given, MOVES: []}

        self._transactions.once(operation_id, LIMIT, {"changes": dict(changes)}, work)

    def _check_present(self, tx: Transaction, plan: Plan) -> Plan:
        present = self._store.plans.get(tx, plan.uuid)
        if present is None or (present.state, present.ending) != (plan.state, plan.ending):
            raise Overtaken(f"plan {plan.uuid} is {present and present.state} by now")
        return present

    def _check_thawed(self, tx: Transaction, kind: PlanKind) -> None:
        found = self._store.plans.frozen(tx)
        if kind is PlanKind.CONSOLIDATE and found is not None:
            raise Conflict(f"consolidation is frozen ({found.reason}); thaw it first")

    def _check_hosts(self, tx: Transaction, plan: Plan) -> None:
        for other in self._store.plans.unattended(tx):
            shared = sorted(plan.hosts & other.hosts) if other.state in UNDER_WAY and other.uuid != plan.uuid else []
            if shared:
                names = ", ".join(shared)
                raise Conflict(f"plan {other.uuid}, which is {other.state}, works on {names}; wait, or cancel it")
        self._check_asleep(tx, plan)

    def _check_asleep(self, tx: Transaction, plan: Plan) -> None:
        """Raise Conflict where a host sleeps, or is on its way there or back, and the plan does not wake it."""
        woken = {action.host for action in plan.actions if action.kind is ActionKind.WAKE}
        for sleep in self._store.host_sleeps.unended(tx):
            if sleep.host in plan.hosts - woken:
                raise Conflict(f"host {sleep.host} is {sleep.state}; wake it first")

    def _move(self, tx: Transaction, before: Plan, after: Plan, *, decided: bool = False) -> None:
        moved = after.state is not before.state
        if moved:
            check_transition(before.state, after.state)
        self._store.plans.change(tx, after, decided=decided, ended=moved and after.state in ENDED)
        if moved:
            effect = {"uuid": before.uuid, "from": str(before.state), "to": str(after.state), "reason": after.reason}
            self._transactions.note(tx, STEP, {"uuid": before.uuid}, {**effect, MOVES: []})
