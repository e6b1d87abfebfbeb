"""Which deaths a run has, from its seed, and when a plan is at a step, by what the ledger has of it."""

from collections import Counter
from dataclasses import replace

import pytest

from pondstack.domain.host_sleep import HostSleep, SleepState
from pondstack.domain.plan import Action, ActionKind, ActionState, Plan, PlanKind, PlanState, PlanTrigger
from tests.robustness.plans.plan import EACH, PLANS_JUDGED, STEPS, Step, Victim, Way, make_plan
from tests.robustness.plans.strike import Pair, is_at

RUNNING = Action(3, ActionKind.SUSPEND, "host1", "host1", state=ActionState.RUNNING)
PLAN = Plan("p", PlanKind.CONSOLIDATE, PlanTrigger.OPERATOR, PlanState.RUNNING, (RUNNING,))
LENDING = HostSleep("s", "host1", "frozen", SleepState.LENDING)


def test_each_step_is_met_by_each_death_and_ways_take_turns() -> None:
    plan = make_plan(7, PLANS_JUDGED)
    met = Counter((kill.step, kill.victim) for kill in plan)
    assert set(met) == {pair for way in Way for pair in EACH[way]}
    assert max(met.values()) <= 2
    assert [kill.step.way for kill in plan[:4]] == [Way.DOWN, Way.UP, Way.DOWN, Way.UP]


def test_a_plan_follows_from_its_seed() -> None:
    assert make_plan(3, 20) == make_plan(3, 20)
    assert make_plan(3, 20) != make_plan(4, 20)


def test_a_plan_is_decided_by_the_leader_alone() -> None:
    assert [step.victims for step in STEPS if step.kind is None] == [(Victim.LEADER,)]


def test_a_step_is_one_of_its_action_and_of_its_sleep() -> None:
    step = Step(Way.DOWN, ActionKind.SUSPEND, SleepState.LENDING)
    assert is_at(step, PLAN, LENDING)
    assert not is_at(step, None, LENDING)
    assert not is_at(step, PLAN, None)
    assert not is_at(step, PLAN, replace(LENDING, state=SleepState.SUSPENDING))
    assert not is_at(step, PLAN, replace(LENDING, ended_at=1.0)), "of a sleep that has ended"
    assert not is_at(step, replace(PLAN, state=PlanState.UNDOING), LENDING)
    assert not is_at(step, replace(PLAN, actions=(replace(RUNNING, state=ActionState.PENDING),)), LENDING)
    assert not is_at(Step(Way.DOWN, ActionKind.MIGRATE), PLAN, None)


def test_a_plan_that_is_decided_has_no_actions_yet() -> None:
    step = Step(Way.DOWN, None)
    assert is_at(step, replace(PLAN, state=PlanState.DECIDING, actions=()), None)
    assert not is_at(step, PLAN, None)


@pytest.mark.parametrize(
    ("victim", "service"),
    [
        (Victim.LEADER, "pondstack-controller-b"),
        (Victim.SLEEPER_AGENT, "pondstack-agent-host1"),
        (Victim.OTHER_AGENT, "pondstack-agent-host2"),
        (Victim.SLEEPER_COMPUTE, "nova-compute-host1"),
        (Victim.OTHER_COMPUTE, "nova-compute-host2"),
        (Victim.OPERATOR, ""),
    ],
)
def test_a_victim_is_a_service(victim: Victim, service: str) -> None:
    assert Pair("host1", "host2").service(victim, "pondstack-controller-b") == service
