"""Servers that found no host: each has one plan, whoever leads."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest

from pondstack.clients.servers import UnplacedServer
from pondstack.controller.consolidation.unplaced import MOST, Pace, Unplaced, cause, record, view
from pondstack.domain.host_sleep import SleepState, Work
from pondstack.domain.host_sleep_step import Act, Step
from pondstack.domain.plan import Afterwards, Effect, PlanKind, PlanTrigger
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 27, 6, 0, tzinfo=UTC)
PACE = Pace(60.0, 900.0)
Z = SleepState


def lost(uuid, flavor="m1", project="blue"):
    return UnplacedServer(uuid, project, flavor, {"VCPU": 1, "MEMORY_MB": 512}, ("!CUSTOM_X",), NOW)


class World:
    """A leader, a host that sleeps, and what Nova tells."""

    def __init__(self):
        self.seconds, self.at, self.servers, self.asked = 1e9, 0.0, [lost("v1")], []
        self.store = MemoryStore(lambda: self.seconds)
        self.lead()
        self.ledger.hosts.heartbeat(report("a", 1, pools=[]))
        self.ledger.host_sleeps.begin(str(uuid4()), "a", "frozen", Work())

    def lead(self):
        """Have another leader."""
        self.ledger = MemoryLedger(self.store, take_over(self.store))
        nova = SimpleNamespace(unplaced=self.tell)
        parts = (nova, self.ledger.plans, self.ledger.host_sleeps)
        self.unplaced = Unplaced(*parts, lambda: PACE, lambda: self.at, lambda: NOW)

    def tell(self, since):
        self.asked.append(since)
        return list(self.servers)

    def sleep(self):
        for state in (Z.LENDING, Z.SUSPENDING, Z.ASLEEP):
            item = self.ledger.host_sleeps.newest("a")
            self.ledger.host_sleeps.advance(item, Step(Act.WAIT, state))
        return self

    def plan(self, *servers, at_once=False):
        uuid = self.ledger.plans.create(
            str(uuid4()),
            PlanKind.CONSOLIDATE,
            trigger=PlanTrigger.POLICY,
            afterwards=Afterwards.KEEP,
            settings={},
            at_once=at_once,
            inputs={"cause": cause(servers), "unplaced": [record(item) for item in servers]},
        )
        return self.ledger.plans.get(uuid)

    def decided(self, plan):
        return self.ledger.plans.decided(plan, (), Effect(), inputs={"hosts": 1}, left_out={})


def test_while_nobody_sleeps_nova_is_not_asked():
    world = World()
    assert (world.unplaced.new(), world.asked) == ([], [])
    world.sleep()
    assert world.unplaced.new() == [lost("v1")]
    assert world.asked == [NOW - timedelta(seconds=900)]


def test_each_server_has_one_plan_whoever_leads():
    world = World().sleep()
    plan = world.plan(*world.unplaced.new(), at_once=True)
    world.servers.append(lost("v2"))
    assert world.unplaced.new() == [], "one is under way"
    world.decided(plan)
    world.lead()
    assert world.unplaced.new() == []
    world.ledger.plans.cancel(str(uuid4()), plan.uuid)
    world.ledger.plans.advance(world.ledger.plans.get(plan.uuid), "cancelled", "")
    assert world.unplaced.new() == [lost("v2")]


def test_a_proposed_plan_holds_the_next_one_back_while_it_may_be_applied():
    world = World().sleep()
    world.decided(world.plan(lost("v1")))
    world.servers = [lost("v2")]
    assert world.unplaced.new() == []
    world.seconds += 901.0
    assert world.unplaced.new() == [lost("v2")]


def test_it_looks_when_it_is_time_and_by_a_hint():
    world = World().sleep()
    assert world.unplaced.is_due
    world.unplaced.new()
    assert not world.unplaced.is_due
    world.unplaced.hint()
    assert world.unplaced.is_due
    world.unplaced.new()
    assert not world.unplaced.is_due
    world.at = 60.0
    assert world.unplaced.is_due


def test_a_plan_is_for_so_many_at_most():
    world = World().sleep()
    world.servers = [lost(f"v{number:04}") for number in reversed(range(MOST + 1))]
    assert [item.uuid for item in world.unplaced.new()] == [f"v{number:04}" for number in range(MOST)]


def test_the_cause_names_flavors_and_projects():
    assert cause([lost("v1"), lost("v2")]) == "scheduling failed for flavor m1 of project blue (2)"
    many = [lost(f"v{number}", f"m{number}") for number in range(5)]
    assert cause(many).endswith("m2 of project blue (1), and 2 more")


def test_a_plan_keeps_its_cause_and_servers():
    world = World()
    plan = world.decided(world.plan(lost("v1")))
    assert plan.reason == plan.cause == "scheduling failed for flavor m1 of project blue (1)"
    assert plan.inputs["hosts"] == 1
    [kept] = map(view, plan.unplaced)
    assert (kept.uuid, kept.local_mib, kept.claim, kept.traits) == ("v1", 512, lost("v1").claim, ("!CUSTOM_X",))
    world.ledger.plans.apply(str(uuid4()), plan.uuid, most_seconds=900.0)
    assert world.ledger.plans.get(plan.uuid).reason == plan.cause


def test_traits_that_nova_does_not_show_stay_unknown():
    server = UnplacedServer("v1", "blue", "m1", {"VCPU": 1}, None, NOW)
    assert view(record(server)).question is None
