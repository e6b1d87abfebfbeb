"""Which compute services are not what the sleeps of their hosts want."""

from uuid import uuid4

import pytest

from pondstack.domain.host_sleep import DISABLED_REASON, ENDED, HostSleep, SleepState, Work
from pondstack.domain.host_sleep_step import Service
from pondstack.domain.plan import ENDED as PLAN_ENDED
from pondstack.domain.plan import Action, ActionKind, ActionState, Afterwards, Plan, PlanKind, PlanState, PlanTrigger
from pondstack.domain.sleeper_services import STAY_DISABLED, stands, wrong

pytestmark = pytest.mark.unit

ON, OURS, THEIRS = Service(True), Service(False, DISABLED_REASON), Service(False, "broken fan")
OPEN = sorted(set(SleepState) - ENDED)


PLAN = Service(False, "pondstack plan 1")


def sleep(state, host="a", kept=False):
    return HostSleep(str(uuid4()), host, "lowpower-s0", state, work=Work(kept_disabled=kept))


@pytest.mark.parametrize("state", OPEN)
def test_a_sleeper_that_was_enabled_is_disabled(state):
    found = wrong({"a": ON, "b": ON}, [sleep(state)], {})
    assert found == (("a",) if state in STAY_DISABLED else (), ())


@pytest.mark.parametrize("service", [OURS, THEIRS])
@pytest.mark.parametrize("state", OPEN)
def test_one_that_is_disabled_stays_so(state, service):
    assert wrong({"a": service}, [sleep(state)], {}) == ((), ())


def test_what_was_disabled_for_a_sleep_that_is_no_more_is_enabled():
    assert wrong({"a": OURS, "b": THEIRS, "c": ON}, [sleep(SleepState.ASLEEP, "d")], {}) == ((), ("a",))


def test_a_sleeper_without_a_service_is_nobody():
    assert wrong({}, [sleep(SleepState.ASLEEP)], {}) == ((), ())


@pytest.mark.parametrize("state", OPEN)
def test_an_order_of_a_plan_gives_way_to_a_sleep(state):
    assert wrong({"a": PLAN}, [sleep(state)], {}) == (("a",) if state in STAY_DISABLED else (), ())
    assert wrong({"a": PLAN}, [sleep(state, kept=True)], {}) == ((), ()), "it was drained before it was suspended"


def test_an_order_of_a_plan_that_does_not_stand_ends():
    assert wrong({"a": PLAN, "b": PLAN}, [], {"a"}) == ((), ("a",))
    assert wrong({"a": PLAN}, [sleep(SleepState.WAKING)], {"a"}) == ((), ()), "its sleep goes on"


def plan(state, *, kind=PlanKind.CONSOLIDATE, afterwards=Afterwards.KEEP, action=ActionState.DONE):
    disable = Action(1, ActionKind.DISABLE, "a", "a", state=action)
    return Plan("1", kind, PlanTrigger.OPERATOR, state, (disable,), afterwards=afterwards)


@pytest.mark.parametrize("state", sorted(set(PlanState) - PLAN_ENDED))
def test_a_plan_that_goes_on_stands(state):
    assert stands(plan(state, afterwards=Afterwards.SUSPEND, action=ActionState.RUNNING), "a")


@pytest.mark.parametrize("state", [PlanState.DONE, PlanState.FAILED])
@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ({}, True),
        ({"afterwards": Afterwards.LEND}, True),
        ({"action": ActionState.SKIPPED}, True),
        ({"kind": PlanKind.DRAIN, "afterwards": Afterwards.SUSPEND}, True),
        ({"afterwards": Afterwards.SUSPEND}, False),
        ({"action": ActionState.REVERTED}, False),
        ({"action": ActionState.FAILED}, False),
    ],
)
def test_a_plan_that_has_ended_stands_where_its_host_stays_disabled(state, changes, held):
    assert stands(plan(state, **changes), "a") is held
    assert not stands(plan(state, **changes), "b")


def test_a_plan_that_was_cancelled_does_not_stand():
    assert not stands(plan(PlanState.CANCELLED), "a")
    assert not stands(plan(PlanState.CANCELLED, kind=PlanKind.DRAIN), "a")
