"""Late orders to Nova, of operators or former leaders, against sleeps that have gone on meanwhile."""

from uuid import uuid4

import pytest

from pondstack.clients.nova import ComputeService
from pondstack.controller.sleep.service_guard import LOOK_SECONDS, WATCH_SECONDS, ServiceGuard
from pondstack.domain.errors import NotLeader, Unavailable
from pondstack.domain.host_sleep import DISABLED_REASON, SleepState, Work
from pondstack.domain.host_sleep_step import Act, Step
from pondstack.domain.plan import (
    OURS,
    Action,
    ActionKind,
    Afterwards,
    Effect,
    PlanKind,
    PlanState,
    PlanTrigger,
    reason_of,
)
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore
from tests.fixtures.played_plans import PlayedNova

pytestmark = pytest.mark.unit

S = SleepState


class Leader:
    """One with a host that sleeps."""

    def __init__(self):
        store = MemoryStore()
        self.ledger, self.nova, self.now = MemoryLedger(store, take_over(store)), PlayedNova(), 0.0
        self.put(enabled=False)
        self.ledger.hosts.heartbeat(report("a", pools=[]))
        self.sleep = self.ledger.host_sleeps.begin(str(uuid4()), "a", "lowpower-s0", Work())
        self.advance(S.LENDING, S.SUSPENDING, S.ASLEEP)
        self.guard = ServiceGuard(self.ledger, self.nova, lambda: self.now)

    def put(self, *, enabled, reason=DISABLED_REASON, up=True):
        """Have the host's service be so."""
        self.nova.services["a"] = ComputeService("id-a", "a", enabled, "" if enabled else reason, up)

    def advance(self, *states):
        """Have the sleep go on."""
        for state in states:
            self.ledger.host_sleeps.advance(self.ledger.host_sleeps.get(self.sleep), Step(Act.WAIT, state))

    @property
    def service(self):
        """Whether the service is enabled, and why not."""
        found = self.nova.services["a"]
        return found.enabled, found.disabled_reason


@pytest.fixture
def leader():
    return Leader()


@pytest.mark.parametrize("up", [True, False])
def test_a_sleeper_that_was_enabled_is_disabled_again(leader, up):
    leader.put(enabled=True, up=up)
    assert leader.guard.watch(any_open=True)
    assert leader.service == (False, DISABLED_REASON)


def test_a_host_that_is_awake_is_not_disabled_for_ever(leader):
    leader.advance(S.WAKING, S.RECLAIMING, S.ENABLING, S.AWAKE)
    leader.guard.watch(any_open=False)
    assert leader.service == (True, "")


def test_one_that_is_down_waits(leader):
    leader.advance(S.WAKING, S.RECLAIMING, S.ENABLING, S.AWAKE)
    leader.put(enabled=False, up=False)
    leader.guard.watch(any_open=False)
    assert leader.service == (False, DISABLED_REASON)


def test_an_operators_order_stands(leader):
    leader.advance(S.WAKING, S.RECLAIMING, S.ENABLING, S.AWAKE)
    leader.put(enabled=False, reason="broken fan")
    leader.guard.watch(any_open=False)
    assert leader.service == (False, "broken fan")


def test_a_late_order_of_a_plan_gives_way_to_the_sleep(leader):
    leader.put(enabled=False, reason=f"{OURS}{uuid4()}")
    leader.guard.watch(any_open=True)
    assert leader.service == (False, DISABLED_REASON)


def awake_by_a_plan(leader, *ends):
    """Have the host be awake, and disabled by a plan; `ends`: as what that ends, if it does."""
    leader.advance(S.WAKING, S.RECLAIMING, S.ENABLING, S.AWAKE)
    plans, action = leader.ledger.plans, Action(1, ActionKind.DISABLE, "a", "a")
    how = {"trigger": PlanTrigger.OPERATOR, "afterwards": Afterwards.KEEP, "settings": {}}
    plan = plans.get(plans.create(str(uuid4()), PlanKind.CONSOLIDATE, **how))
    plan = plans.decided(plan, (action,), Effect(), inputs={}, left_out={})
    plans.apply(str(uuid4()), plan.uuid, most_seconds=600.0)
    for state in ends:
        plans.advance(plans.get(plan.uuid), state, "", ending=str(PlanState.CANCELLED))
    leader.put(enabled=False, reason=reason_of(plan))
    return reason_of(plan)


def test_a_late_order_of_a_plan_that_was_cancelled_ends(leader):
    awake_by_a_plan(leader, PlanState.UNDOING, PlanState.CANCELLED)
    leader.guard.watch(any_open=False)
    assert leader.service == (True, "")


@pytest.mark.parametrize("ends", [(), (PlanState.UNDOING,)])
def test_an_order_of_a_plan_that_goes_on_stands(leader, ends):
    reason = awake_by_a_plan(leader, *ends)
    leader.guard.watch(any_open=False)
    assert leader.service == (False, reason)


def test_an_order_of_a_plan_that_the_ledger_does_not_know_stands(leader):
    leader.advance(S.WAKING, S.RECLAIMING, S.ENABLING, S.AWAKE)
    leader.put(enabled=False, reason=f"{OURS}{uuid4()}")
    leader.guard.watch(any_open=False)
    assert not leader.nova.services["a"].enabled


def test_looks_are_seldom_and_end(leader):
    assert leader.guard.watch(any_open=True)
    leader.put(enabled=True)
    leader.now = LOOK_SECONDS - 1
    leader.guard.watch(any_open=True)
    assert leader.service == (True, "")
    leader.now = LOOK_SECONDS
    leader.guard.watch(any_open=True)
    assert leader.service == (False, DISABLED_REASON)
    leader.now = LOOK_SECONDS + WATCH_SECONDS - 1
    assert leader.guard.watch(any_open=False)
    leader.now += 1
    assert not leader.guard.watch(any_open=False)


def test_a_nova_that_does_not_answer_is_asked_again(leader, monkeypatch):
    def raising(error):
        def compute_services():
            raise error

        monkeypatch.setattr(leader.nova, "compute_services", compute_services)

    raising(Unavailable("Nova does not answer"))
    assert leader.guard.watch(any_open=True)
    raising(NotLeader("another one leads"))
    leader.now = LOOK_SECONDS
    with pytest.raises(NotLeader):
        leader.guard.watch(any_open=True)
