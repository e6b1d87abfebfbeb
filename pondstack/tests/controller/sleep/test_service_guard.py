"""Late orders to Nova, of operators or former leaders, against sleeps that have gone on meanwhile."""

from uuid import uuid4

import pytest

from pondstack.clients.nova import ComputeService
from pondstack.controller.sleep.service_guard import LOOK_SECONDS, WATCH_SECONDS, ServiceGuard
from pondstack.domain.errors import NotLeader, Unavailable
from pondstack.domain.host_sleep import DISABLED_REASON, SleepState, Work
from pondstack.domain.host_sleep_step import Act, Step
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
