"""The keeper over a ledger in memory: a sleeper that nobody needs takes its memory back, and sleeps deeper."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from uuid import uuid4

import pytest

from pondstack.clients.nova import ComputeService
from pondstack.controller.lending.host_lends import HostLends
from pondstack.controller.sleep.actor import Actor
from pondstack.controller.sleep.keeper import DEEPER_LOOK_SECONDS, SleepKeeper
from pondstack.controller.sleep.observer import suspension
from pondstack.domain.host_sleep import DISABLED_REASON, HostSleep, SleepState, Work
from pondstack.domain.host_sleep_step import Act, Limits, PowerWord, Seen, Service, Step
from pondstack.domain.lending import Lender, LenderKind
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore
from tests.fixtures.played_plans import PlayedNova

pytestmark = pytest.mark.unit

S = SleepState
OLD = PowerWord("woken", mine=False)


class Leader:
    """One over two hosts that sleep and lend; `seen`: what is seen of a host in a state. `told`: to sleep, and how."""

    def __init__(self, executor, bmcs=("a", "b"), deeper="s3"):
        store = MemoryStore()
        self.ledger, self.nova, self.clock = MemoryLedger(store, take_over(store)), PlayedNova(), 0.0
        self.told = []
        self.seen = {
            S.WAKING: Seen(power=OLD),
            S.RECLAIMING: Seen(),
            S.SUSPENDING: Seen(power=OLD),
            S.ENABLING: Seen(service=Service(False, DISABLED_REASON)),
        }
        for host, buffers in (("a", 2), ("b", 5)):
            self.begin(host, buffers)
        lends = HostLends(self.ledger, self, lambda: None)
        actor = Actor(
            self.ledger, self.nova, self, None, {}, lends=lends, admit=lambda: None, fence=lambda *_words: None
        )
        self.keeper = SleepKeeper(
            self.ledger,
            self.nova,
            None,
            SimpleNamespace(look=lambda item: self.seen.get(item.state, Seen(report_age=3600.0))),
            actor,
            limits=lambda: Limits(deeper_driver=deeper, deeper_seconds=0.0),
            executor=executor,
            wakeable=bmcs,
            clock=lambda: self.clock,
        )

    def begin(self, host, buffers):
        """Have a host lend and sleep."""
        self.nova.services[host] = ComputeService(f"id-{host}", host, False, DISABLED_REASON, True)
        self.ledger.hosts.heartbeat(report(host, pools=[]))
        lender = Lender(host, f"life of {host}", LenderKind.ZOMBIE)
        self.ledger.buffers.delegate(lender, 1, {index: 64 * index for index in range(buffers)})
        uuid = self.ledger.host_sleeps.begin(str(uuid4()), host, "lowpower-s0", Work())
        for state in (S.LENDING, S.SUSPENDING, S.ASLEEP):
            self.ledger.host_sleeps.advance(self.ledger.host_sleeps.get(uuid), Step(Act.WAIT, state))

    def suspend(self, host, *, epoch, operation_id, driver):
        """Hear what an agent is told."""
        assert epoch == self.ledger.epoch
        self.told.append((host, driver, operation_id))

    def end_suspension(self, _host, *, epoch, operation_id):
        """Hear that an order to sleep has ended."""
        assert epoch == self.ledger.epoch
        return {"operation_id": operation_id, "state": "woken"}

    def of(self, host) -> HostSleep:
        """Return a host's sleep."""
        return self.ledger.host_sleeps.newest(host)


@pytest.fixture
def executor():
    with ThreadPoolExecutor(1) as made:
        yield made


def test_a_sleeper_that_nobody_needs_sleeps_deeper(executor):
    leader = Leader(executor)
    before = suspension(leader.of("a"))
    leader.keeper.run()
    assert (leader.of("a").state, leader.of("a").work.deeper) == (S.WAKING, "s3")
    assert leader.of("b").state is S.ASLEEP
    leader.keeper.run()
    [(host, driver, operation)] = leader.told
    assert (host, driver, leader.of("a").state) == ("a", "s3", S.SUSPENDING)
    assert operation != before
    # Nova places nothing there meanwhile.
    assert not leader.nova.services["a"].enabled
    leader.seen[S.SUSPENDING] = Seen(60.0, power=None, report_age=60.0)
    leader.keeper.run()
    assert (leader.of("a").state, leader.of("a").driver) == (S.ASLEEP, "s3")


def test_one_that_is_wanted_back_meanwhile_comes_back(executor):
    leader = Leader(executor)
    leader.keeper.run()
    leader.keeper.wake("a")
    leader.keeper.run()
    assert leader.told == []
    assert leader.nova.services["a"].enabled


def test_the_next_leader_ends_it_between_two_steps(executor):
    leader = Leader(executor)

    def end(item):
        if item.state is S.ENABLING:
            leader.ledger.host_sleeps.advance(leader.of("a"), Step(Act.WAIT, S.ABORTED))

    leader.keeper._changed = end
    leader.keeper.wake("a")
    leader.keeper.run()
    assert leader.of("a").state is S.ABORTED


def test_it_is_seldom_looked_for(executor):
    leader = Leader(executor, bmcs=())
    leader.keeper.run()
    leader.keeper._wakeable = ("a",)
    leader.keeper._deepens_at = DEEPER_LOOK_SECONDS
    leader.keeper.run()
    assert leader.of("a").state is S.ASLEEP
    leader.clock = DEEPER_LOOK_SECONDS
    leader.keeper.run()
    assert leader.of("a").state is S.WAKING


@pytest.mark.parametrize(("bmcs", "deeper"), [((), "s3"), (("b",), "s3"), (("a", "b"), "")])
def test_nobody_sleeps_deeper_that_cannot_be_woken_or_would_be_missed(executor, bmcs, deeper):
    leader = Leader(executor, bmcs, deeper)
    leader.keeper.run()
    assert {leader.of(host).state for host in "ab"} == {S.ASLEEP}
