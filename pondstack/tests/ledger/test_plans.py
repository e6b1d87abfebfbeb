"""Plans in the ledger: each step once, none that another overtook, one under way on a host, and the freeze."""

from dataclasses import replace
from uuid import uuid4

import pytest

from pondstack.domain.consolidation_limits import NOTHING_SET, ConsolidationLimits
from pondstack.domain.errors import BadRequest, Conflict, IllegalTransition, NotFound
from pondstack.domain.host_sleep import Work
from pondstack.domain.plan import (
    Action,
    ActionKind,
    ActionState,
    Afterwards,
    Effect,
    PlanKind,
    PlanState,
    PlanTrigger,
    reason_of,
)
from pondstack.ledger.plans import Overtaken
from tests.fixtures.ledgers import report

S = PlanState
ACTIONS = (Action(1, ActionKind.DISABLE, "a", "a"), Action(2, ActionKind.MIGRATE, "a", "a", str(uuid4()), "b", 512))
EFFECT = Effect(hosts_emptied=1, migrations=1, moved_mib=512, saved_watts=1.5, power_profile="hp")


def op():
    return str(uuid4())


def create(ledger, operation=None, **how):
    values = {"trigger": PlanTrigger.OPERATOR, "afterwards": Afterwards.LEND, "settings": {"overload": "mad"}, **how}
    return ledger.plans.get(ledger.plans.create(operation or op(), values.pop("kind", PlanKind.CONSOLIDATE), **values))


def decided(ledger, actions=ACTIONS, **how):
    plan = create(ledger, **how)
    return ledger.plans.decided(plan, actions, EFFECT, inputs={"hosts": 2}, left_out={"c": "its CPU load is unknown"})


def apply(ledger, plan, most_seconds=600.0):
    ledger.plans.apply(op(), plan.uuid, most_seconds=most_seconds)
    return ledger.plans.get(plan.uuid)


def test_a_plan_is_only_proposed(ledger, reader):
    plan = decided(ledger)
    assert plan.state is S.PROPOSED
    shown = reader.plans.plan(plan.uuid)
    assert (shown.actions, shown.effect, shown.settings) == (ACTIONS, EFFECT, {"overload": "mad"})
    assert (shown.left_out, shown.inputs) == ({"c": "its CPU load is unknown"}, {"hosts": 2})
    assert shown.decided_at >= shown.created_at
    assert ledger.plans.unattended() == []
    assert [item.uuid for item in reader.plans.plans(state="proposed")] == [plan.uuid]
    assert reader.plans.plans(state="running") == []


def test_a_repetition_is_the_same_one(ledger):
    assert create(ledger, "op1").uuid == create(ledger, "op1").uuid


def test_one_that_is_applied_goes_to_its_end(ledger, reader):
    plan = apply(ledger, decided(ledger))
    assert [item.uuid for item in ledger.plans.unattended()] == [plan.uuid]
    running = replace(ACTIONS[0], state=ActionState.RUNNING, tries=1)
    ledger.plans.note(plan, ACTIONS[0], running)
    ledger.plans.note(plan, running, replace(running, state=ActionState.DONE))
    assert ledger.plans.get(plan.uuid).actions[0].state is ActionState.DONE
    ended = ledger.plans.advance(plan, S.DONE, "")
    assert reader.plans.plan(plan.uuid).ended_at is not None
    assert ledger.plans.unattended() == []
    with pytest.raises(IllegalTransition):
        ledger.plans.advance(ended, S.RUNNING, "")


def test_an_action_that_another_leader_took_further_is_left_alone(ledger):
    plan = apply(ledger, decided(ledger))
    ledger.plans.note(plan, ACTIONS[0], replace(ACTIONS[0], state=ActionState.RUNNING, tries=1))
    with pytest.raises(Overtaken, match="action 1"):
        ledger.plans.note(plan, ACTIONS[0], replace(ACTIONS[0], state=ActionState.SKIPPED))


def test_a_cancelled_one_is_undone_and_no_step_of_before_counts(ledger):
    plan = apply(ledger, decided(ledger))
    ledger.plans.cancel(op(), plan.uuid)
    after = ledger.plans.get(plan.uuid)
    assert (after.state, after.ending) == (S.UNDOING, "cancelled")
    with pytest.raises(Overtaken):
        ledger.plans.note(plan, ACTIONS[0], replace(ACTIONS[0], state=ActionState.RUNNING, tries=1))
    with pytest.raises(Overtaken):
        ledger.plans.advance(plan, S.DONE, "")
    ledger.plans.cancel(op(), plan.uuid)
    assert ledger.plans.advance(after, S.CANCELLED, "").state is S.CANCELLED
    with pytest.raises(Conflict, match="cancelled already"):
        ledger.plans.cancel(op(), plan.uuid)


@pytest.mark.parametrize("make", [create, decided])
def test_one_that_has_not_begun_is_cancelled_at_once(ledger, make):
    plan = make(ledger)
    ledger.plans.cancel(op(), plan.uuid)
    assert ledger.plans.get(plan.uuid).state is S.CANCELLED
    with pytest.raises(Conflict, match="only a proposed one"):
        apply(ledger, plan)


def test_a_host_is_of_one_plan_at_a_time(ledger):
    first, second, third = (
        decided(ledger),
        decided(ledger),
        decided(ledger, (replace(ACTIONS[0], chain="d", host="d"),)),
    )
    apply(ledger, first)
    with pytest.raises(Conflict, match=f"plan {first.uuid}, which is running, works on a, b"):
        apply(ledger, second)
    apply(ledger, third)
    with pytest.raises(Conflict, match="works on a"):
        decided(ledger, kind=PlanKind.DRAIN, target="a", at_once=True)


def test_what_is_old_is_not_applied(ledger):
    plan = decided(ledger)
    with pytest.raises(Conflict, match="make a new one"):
        apply(ledger, plan, most_seconds=-1.0)
    assert ledger.plans.get(plan.uuid).state is S.PROPOSED


def test_frozen_consolidation_begins_nothing_but_drains(ledger, reader):
    plan = decided(ledger)
    ledger.plans.freeze(op(), "an upgrade")
    assert reader.plans.frozen().reason == "an upgrade"
    with pytest.raises(Conflict, match=r"frozen \(an upgrade\)"):
        apply(ledger, plan)
    with pytest.raises(Conflict, match="frozen"):
        create(ledger, at_once=True)
    assert decided(ledger, kind=PlanKind.DRAIN, target="a", at_once=True).state is S.RUNNING
    ledger.plans.freeze(op(), "still")
    ledger.plans.freeze(op(), None)
    assert reader.plans.frozen() is None
    ledger.plans.freeze(op(), None)


def test_limits_are_set_once_and_unset(ledger, reader):
    assert reader.plans.limits() == ledger.plans.limits() == NOTHING_SET
    operation = op()
    ledger.plans.set_limits(operation, {"reserve_percent": 20.0})
    ledger.plans.set_limits(op(), {"least_awake": 0})
    assert reader.plans.limits() == ledger.plans.limits() == ConsolidationLimits(20.0, 0)
    ledger.plans.set_limits(op(), {"reserve_percent": None})
    ledger.plans.set_limits(operation, {"reserve_percent": 20.0})  # late, and repeated
    assert reader.plans.limits() == ConsolidationLimits(None, 0)
    with pytest.raises(BadRequest):
        ledger.plans.set_limits(op(), {"least_awake": -1})
    ledger.plans.set_limits(op(), {"least_awake": None})
    assert reader.plans.limits() == NOTHING_SET


def test_what_consolidation_began_lately_is_counted(ledger):
    for kind in (PlanKind.CONSOLIDATE, PlanKind.DRAIN):
        plan = decided(ledger, (replace(ACTIONS[1], number=1, chain=kind, host=kind, destination=""),), kind=kind)
        plan = apply(ledger, plan)
        [action] = plan.actions
        begun = replace(action, state=ActionState.RUNNING, tries=1)
        ledger.plans.note(plan, action, begun)
    assert ledger.plans.begun("live-migrate", 3600.0) == 1
    assert ledger.plans.begun("disable", 3600.0) == 0
    plan = decided(ledger, ACTIONS)
    plan = apply(ledger, plan)
    action = plan.actions[1]
    for tries in (1, 2):
        begun = replace(action, state=ActionState.RUNNING, tries=tries)
        ledger.plans.note(plan, action, begun)
        action = replace(begun, state=ActionState.PENDING)
        ledger.plans.note(plan, begun, action)
    assert ledger.plans.begun("live-migrate", 3600.0) == 3, "each try is a migration"


def suspended(ledger, host, **work):
    ledger.hosts.heartbeat(report(host, 1, pools=[]))
    return ledger.host_sleeps.begin(op(), host, "frozen", Work(**work))


@pytest.mark.parametrize("kind", [ActionKind.ENABLE, ActionKind.DISABLE, ActionKind.MIGRATE])
def test_a_host_that_sleeps_is_only_woken_by_a_plan(ledger, kind):
    suspended(ledger, "a")
    plan = decided(ledger, (Action(1, kind, "c", "c", destination="a"),))
    with pytest.raises(Conflict, match="host a is disabling; wake it first"):
        apply(ledger, plan)
    wake = Action(1, ActionKind.WAKE, "a", "a")
    move = Action(2, ActionKind.MIGRATE, "c", "c", op(), "a")
    assert apply(ledger, decided(ledger, (wake, move))).state is S.RUNNING


def test_a_host_of_a_plan_under_way_sleeps_by_that_plan_only(ledger):
    plan = apply(ledger, decided(ledger))
    for host, work in (("a", {}), ("b", {}), ("a", {"disabled_by": "pondstack plan another"})):
        with pytest.raises(Conflict, match=f"works on host {host}; wait, or cancel it"):
            suspended(ledger, host, **work)
    assert suspended(ledger, "a", disabled_by=reason_of(plan))
    assert suspended(ledger, "c")


def test_old_ones_are_forgotten(ledger, reader):
    plan = decided(ledger)
    running = apply(ledger, decided(ledger, (replace(ACTIONS[0], chain="d", host="d"),)))
    ledger.prune(3600.0, None, -1.0)
    assert [item.uuid for item in reader.plans.plans()] == [running.uuid]
    with pytest.raises(NotFound):
        reader.plans.plan(plan.uuid)


def test_pages(ledger, reader):
    made = [create(ledger).uuid for _ in range(3)]
    first = reader.plans.plans(limit=2)
    rest = reader.plans.plans(limit=2, marker=first[-1].uuid)
    assert sorted(item.uuid for item in (*first, *rest)) == sorted(made)
    with pytest.raises(NotFound, match="without a marker"):
        reader.plans.plans(marker=op())
