"""What is found wrong after a consolidation plan: each part that does not agree, and nothing where all do."""

from dataclasses import replace
from typing import Any

import pytest

from pondstack.domain.host_sleep import SleepState
from pondstack.domain.plan import Action, ActionKind, ActionState, Plan, PlanKind, PlanState, PlanTrigger
from tests.robustness.plans.judge import ASLEEP, ENABLED, HostSeen, Seen, broken
from tests.robustness.plans.plan import Way

AWAKE = HostSeen(ENABLED, SleepState.AWAKE, 0, 0, 3)
SLEEPS = HostSeen(ASLEEP, SleepState.ASLEEP, 1024, 3, 3)
MOVED = Action(2, ActionKind.MIGRATE, "host2", "host2", "s", "host1", state=ActionState.DONE)
PLAN = Plan("p", PlanKind.CONSOLIDATE, PlanTrigger.OPERATOR, PlanState.DONE, (MOVED,))
FAILED = replace(PLAN, state=PlanState.FAILED, actions=(replace(MOVED, state=ActionState.FAILED),))
DOWN = Seen(PLAN, SLEEPS, AWAKE, "ACTIVE", "", "host2", {"host2": "running"}, {"host2": 1024})
UP = Seen(PLAN, AWAKE, AWAKE, "ACTIVE", "", "host1", {"host1": "running"}, {"host1": 1024})


def wrong(seen: Seen, way: Way) -> list[str]:
    return broken(seen, way, "host1", "host2")


def test_nothing_is_wrong_where_all_agree() -> None:
    assert wrong(DOWN, Way.DOWN) == []
    assert wrong(UP, Way.UP) == []


def test_what_failed_may_leave_the_server_at_either_host() -> None:
    undone = replace(UP, plan=FAILED, sleeper=replace(AWAKE, sleep=None))
    assert wrong(undone, Way.DOWN) == []
    assert (
        wrong(replace(undone, host="host2", domains={"host2": "running"}, claimed_mib={"host2": 1024}), Way.DOWN) == []
    )
    assert wrong(replace(DOWN, plan=FAILED), Way.UP) == [], "who was not woken sleeps on"
    assert wrong(replace(DOWN, plan=FAILED), Way.DOWN) != [], "who was put to sleep in vain is woken"


@pytest.mark.parametrize(
    "changes",
    [
        {"sleeper": replace(SLEEPS, service=ENABLED)},
        {"sleeper": replace(SLEEPS, service=("disabled", "a disk"))},
        {"sleeper": replace(SLEEPS, sleep=SleepState.LOST)},
        {"sleeper": replace(SLEEPS, sleep=None)},
        {"sleeper": replace(SLEEPS, lent_mib=0)},
        {"sleeper": replace(SLEEPS, stopped=2)},
        {"sleeper": AWAKE},
        {"other": replace(AWAKE, service=("disabled", "pondstack plan p"))},
        {"other": replace(AWAKE, lent_mib=64)},
        {"other": replace(AWAKE, stopped=1)},
        {"host": "host1", "domains": {"host1": "running"}, "claimed_mib": {"host1": 1024}},
    ],
)
def test_a_host_that_was_to_sleep_and_does_not(changes: dict[str, Any]) -> None:
    assert len(wrong(replace(DOWN, **changes), Way.DOWN)) >= 1


@pytest.mark.parametrize(
    "changes",
    [
        {"sleeper": replace(AWAKE, service=ASLEEP)},
        {"sleeper": replace(AWAKE, sleep=SleepState.RECLAIMING)},
        {"sleeper": replace(AWAKE, lent_mib=64)},
        {"sleeper": replace(AWAKE, stopped=3)},
        {"status": "ERROR"},
        {"task": "migrating"},
        {"claimed_mib": {"host2": 1024}},
        {"claimed_mib": {"host1": 1024, "host2": 1024}},
        {"domains": {"host1": "running", "host2": "paused"}},
        {"domains": {}},
        {"claimed_mib": {}},
        {"plan": replace(PLAN, actions=(replace(MOVED, state=ActionState.RUNNING),))},
    ],
)
def test_a_host_that_was_to_wake_and_has_not(changes: dict[str, Any]) -> None:
    assert len(wrong(replace(UP, **changes), Way.UP)) == 1
