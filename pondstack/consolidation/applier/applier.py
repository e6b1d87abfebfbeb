"""Takes each plan that is under way as far as it goes now; the next leader goes on where this one ended.

That an action begins is written down before it does; what became of it is looked at, not remembered.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from oslo_log import log

from pondstack.consolidation.applier.actions import Condition, Handler, Is
from pondstack.consolidation.applier.chains import chains, due, has_failed, is_settled
from pondstack.domain.errors import BadRequest, Conflict, NotFound, NotLeader, PondError
from pondstack.domain.plan import SETTLED, Action, ActionKind, ActionState, Plan, PlanKind, PlanState
from pondstack.ledger.plans import Overtaken, Plans

LOG = log.getLogger(__name__)

HOUR = 3600.0
_A = ActionState


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast plans are carried out: [consolidation] has each. Counts, and seconds."""

    migrations_at_a_time: int
    migrations_per_hour: int
    idle_seconds: float
    tries: int


class Applier:
    """One leader's. run() is for one thread. `changed` hears of each plan that has ended, `settled` of each action."""

    def __init__(
        self,
        plans: Plans,
        handlers: Callable[[], Mapping[ActionKind, Handler]],
        pace: Callable[[], Pace],
        clock: Callable[[], float],
        changed: Callable[[Plan], object] = lambda _plan: None,
        settled: Callable[[Action], object] = lambda _action: None,
    ) -> None:
        self._plans, self._handlers, self._pace = plans, handlers, pace
        self._clock, self._changed, self._settled = clock, changed, settled
        self._waiting: dict[tuple[str, int], float] = {}
        """Since when an action waits for its pre-condition, by this leader's clock."""

    def run(self, plans: Sequence[Plan]) -> None:
        """Do one round over the plans that are under way."""
        moving = sum(_is_moving(action) for plan in plans for action in plan.actions)
        for plan in plans:
            try:
                moving += self._further(plan, moving)
            except NotLeader:
                raise
            except Overtaken as error:
                LOG.debug("Plan %s is looked at again: %s", plan.uuid, error)
            except PondError as error:
                LOG.debug("Plan %s waits: %s", plan.uuid, error)
                self._say(plan, error.message)

    def _further(self, plan: Plan, moving: int) -> int:
        """Take one plan further; returns how many migrations it began."""
        if plan.state is PlanState.UNDOING:
            self._undo(plan)
            return 0
        frozen = self._plans.frozen() if plan.kind is PlanKind.CONSOLIDATE else None
        room = 0 if frozen is not None else self._room(plan, moving)
        began = 0
        for chain in chains(plan.actions):
            for action in due(chain):
                if action.state is _A.RUNNING:
                    self._look(plan, action)
                elif frozen is None and (action.kind is not ActionKind.MIGRATE or began < room):
                    began += self._begin(plan, action)
        for chain in chains(self._plans.get(plan.uuid).actions):
            if has_failed(chain):
                self._give_up(plan, chain)
        present = self._plans.get(plan.uuid)
        if is_settled(present.actions):
            self._end(present)
        elif frozen is not None:
            self._say(present, f"consolidation is frozen: {frozen.reason}")
        elif plan.kind is PlanKind.CONSOLIDATE:
            waits = any(_waits(action) for chain in chains(present.actions) for action in due(chain))
            self._say(present, (self._budget() if waits else "") or present.cause)
        return began

    def _room(self, plan: Plan, moving: int) -> int:
        pace = self._pace()
        room = pace.migrations_at_a_time - moving
        if plan.kind is PlanKind.CONSOLIDATE:
            room = min(room, pace.migrations_per_hour - self._plans.begun(str(ActionKind.MIGRATE), HOUR))
        return room

    def _budget(self) -> str:
        """Return what a plan waits for whose migrations the hourly budget holds back, "": it does not."""
        most = self._pace().migrations_per_hour
        if self._plans.begun(str(ActionKind.MIGRATE), HOUR) < most:
            return ""
        left = f"[consolidation] migrations_per_hour ({most}) is used up"
        free_at = self._plans.free_at(str(ActionKind.MIGRATE), HOUR)
        return f"{left}; the next may begin at {_moment(free_at)}" if most and free_at is not None else left

    # One action

    def _begin(self, plan: Plan, action: Action) -> bool:
        """Begin an action if it may; returns whether a migration began."""
        handler = self._handlers()[action.kind]
        done = _asked(handler.post_condition, plan, action)
        if done.holds is Is.TRUE:
            self._note(plan, action, _A.SKIPPED, done.reason or "it was so already")
            return False
        may = _asked(handler.pre_condition, plan, action)
        if may.holds is Is.FALSE:
            self._note(plan, action, _A.FAILED, may.reason)
            return False
        if may.holds is Is.WAITING:
            self._wait(plan, action, may.reason)
            return False
        self._waiting.pop((plan.uuid, action.number), None)
        begun = replace(action, state=_A.RUNNING, reason="", tries=action.tries + 1)
        self._plans.note(plan, action, begun)
        try:
            handler.execute(plan, begun)
        except NotLeader:
            raise
        except (Conflict, NotFound, BadRequest) as error:
            self._again(plan, begun, error.message)
        return action.kind is ActionKind.MIGRATE

    def _wait(self, plan: Plan, action: Action, reason: str) -> None:
        since = self._waiting.setdefault((plan.uuid, action.number), self._clock())
        if self._clock() - since > self._pace().idle_seconds:
            self._note(plan, action, _A.FAILED, f"{reason or 'it'} did not end in time")
        else:
            self._note(plan, action, _A.PENDING, reason)

    def _look(self, plan: Plan, action: Action) -> None:
        done = _asked(self._handlers()[action.kind].post_condition, plan, action)
        if done.holds is Is.TRUE:
            self._note(plan, action, _A.DONE, done.reason)
        elif done.holds is Is.NEVER:
            self._note(plan, action, _A.FAILED, done.reason)
        elif done.holds is Is.FALSE:
            self._again(plan, action, done.reason)

    def _again(self, plan: Plan, action: Action, reason: str) -> None:
        """Have an action that came to nothing tried again, as often as it may."""
        state = _A.PENDING if action.tries < self._pace().tries else _A.FAILED
        self._note(plan, action, state, reason)

    def _note(self, plan: Plan, action: Action, state: ActionState, reason: str) -> None:
        if state is not action.state:
            LOG.info(
                "Plan %s, action %d: %s %s is %s %s",
                plan.uuid,
                action.number,
                action.kind,
                action.server_uuid or action.host,
                state,
                reason,
            )
        after = replace(action, state=state, reason=reason)
        self._plans.note(plan, action, after)
        if state is not action.state and state in SETTLED:
            self._settled(after)

    # All of a plan

    def _give_up(self, plan: Plan, chain: Sequence[Action]) -> None:
        """Take back what a chain that failed has done, once nothing of it is under way."""
        for action in chain:
            if action.state is _A.PENDING:
                self._note(plan, action, _A.SKIPPED, "another action of this host has failed")
        if not any(action.state is _A.RUNNING for action in chain):
            self._revert(plan, chain)

    def _undo(self, plan: Plan) -> None:
        for action in plan.actions:
            if action.state is _A.PENDING:
                self._note(plan, action, _A.SKIPPED, plan.reason)
            elif action.state is _A.RUNNING:
                done = _asked(self._handlers()[action.kind].post_condition, plan, action)
                if done.holds is not Is.WAITING:
                    self._note(plan, action, _A.DONE if done.holds is Is.TRUE else _A.SKIPPED, done.reason)
        present = self._plans.get(plan.uuid)
        if not is_settled(present.actions):
            return
        if plan.ending == PlanState.CANCELLED:
            self._revert(plan, present.actions)
        self._changed(self._plans.advance(present, PlanState(plan.ending), plan.reason))

    def _revert(self, plan: Plan, actions: Sequence[Action]) -> None:
        for action in reversed(actions):
            if action.state is _A.DONE and self._handlers()[action.kind].revert(plan, action):
                self._note(plan, action, _A.REVERTED, "")

    def _end(self, plan: Plan) -> None:
        failed = [action for action in plan.actions if action.state is _A.FAILED]
        if not failed:
            self._changed(self._plans.advance(plan, PlanState.DONE, plan.cause))
            return
        names = ", ".join(sorted({action.chain for action in failed}))
        reason = f"{len(failed)} of {len(plan.actions)} actions failed, for {names}: {failed[0].reason}"
        self._plans.advance(plan, PlanState.UNDOING, reason, ending=str(PlanState.FAILED))

    def _say(self, plan: Plan, reason: str) -> None:
        """Write down what a plan waits for."""
        try:
            present = self._plans.get(plan.uuid)
            self._plans.advance(present, present.state, reason)
        except (Overtaken, NotFound) as error:
            LOG.debug("Plan %s has gone on meanwhile: %s", plan.uuid, error)


def _asked(look: Callable[[Plan, Action], Condition], plan: Plan, action: Action) -> Condition:
    """Return a condition; what Nova does not know does not hold."""
    try:
        return look(plan, action)
    except NotLeader:
        raise
    except (Conflict, NotFound, BadRequest) as error:
        return Condition(Is.FALSE, error.message)


def _waits(action: Action) -> bool:
    return action.kind is ActionKind.MIGRATE and action.state is _A.PENDING


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _is_moving(action: Action) -> bool:
    return action.kind is ActionKind.MIGRATE and action.state is _A.RUNNING
