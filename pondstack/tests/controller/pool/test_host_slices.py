"""The leader has hosts hold slices for themselves, with a real Placement; agents are plain objects."""

from types import SimpleNamespace
from uuid import uuid4

import oslo_messaging
import pytest

from pondstack.controller.gate import Gate
from pondstack.controller.leader.host_endpoint import HostEndpoint
from pondstack.controller.leader.removal_endpoint import RemovalEndpoint
from pondstack.controller.pool.host_slices import HostSliceKeeper
from pondstack.controller.pool.inventory import aggregate_uuid
from pondstack.controller.pool.snapshot import make_snapshot
from pondstack.domain.errors import (
    AgentUnavailable,
    BadRequest,
    Conflict,
    HostUnusable,
    InUse,
    NotEmpty,
    PurposeConflict,
)
from pondstack.domain.host_slices import HoldingKey
from pondstack.domain.purpose import Purpose
from pondstack.domain.states import SliceState
from pondstack.domain.units import RESOURCE_CLASS
from pondstack.rpc.wire import Grant, to_arguments
from pondstack.tests.controller.conftest import POOL, SLICES, audit
from tests.fixtures.rpc_call import call

MIB = 1024
TIER, BASE = (HoldingKey("h1", POOL, purpose) for purpose in (Purpose.TIER, Purpose.BASE))


class World:
    """`refuses`: what the agent raises instead of holding a slice; `held`: how often it was told to."""

    def __init__(self, rack, placement):
        self.rack, self.placement, self.refuses, self.told = rack, placement, None, 0
        self.tiering = []
        agents = SimpleNamespace(hold=self.hold, offline=rack.agents.offline)
        self.keeper = HostSliceKeeper(rack.ledger, rack.reader.rack, agents, placement, lambda: None, rack.reader._down)
        self.endpoint = HostEndpoint(ledger=rack.ledger, agents=self, changed=lambda: None, gate=Gate())

    def hold(self, *, epoch, operation_id, request):
        self.told += 1
        if self.refuses:
            raise self.refuses
        agent = self.rack.agents[request.host]
        agent.check(epoch)
        grant = Grant.from_wire(call(self.rack.endpoint.assign, operation_id=operation_id, **to_arguments(request)))
        assert grant.purpose == request.purpose
        agent.hold(grant, in_use=False)
        ids = {"operation_id": operation_id, "allocation_uuid": grant.allocation_uuid, "host": request.host}
        call(self.rack.endpoint.acknowledge, **ids)

    def set_tiering(self, host, *, epoch, on):
        self.rack.agents[host].check(epoch)
        if self.refuses:
            raise self.refuses
        self.tiering.append((host, on))

    def tier(self, on):
        call(self.endpoint.set_tiering, name="h1", on=on, generation=None, operation_id=str(uuid4()))

    def want(self, key, count):
        told = {"name": key.host, "pool_uuid": key.pool_uuid, "purpose": str(key.purpose), "count": count}
        call(self.endpoint.set_host_slices, generation=None, operation_id=str(uuid4()), **told)

    def round(self):
        """One round of the leader; the agent reports before it."""
        self.rack.beat()
        codes = self.rack.reconcile()
        self.keeper.run()
        self.rack.sanitizer.drain()
        if self.placement:
            self.rack.sync.write(self.rack.reader.rack())
        return codes

    def claims(self, key=TIER):
        return key.numbers(self.placement.allocations_of(POOL) or ())

    def shown(self, key=TIER):
        mine = [item for item in self.rack.reader.host(key.host).holdings if item["purpose"] == key.purpose]
        return (mine[0]["wanted"], mine[0]["online"], mine[0]["reason"]) if mine else None

    def aggregates(self, host):
        found = self.placement._get(f"/resource_providers/{self.placement.provider_by_name(host)}/aggregates")
        return set(found["aggregates"])


@pytest.fixture
def world(placed, placement):
    return World(placed, placement)


def guest(placement, slices):
    consumer = str(uuid4())
    assert placement.claim(POOL, RESOURCE_CLASS, {consumer: slices * MIB})
    return consumer


def test_claimed_held_shown_and_given_back(world):
    world.want(TIER, 2)
    world.round()
    assert set(world.claims()) == {0, 1}
    assert world.shown() == (2, 2, "")
    assert world.rack.count(SliceState.ONLINE) == 2
    world.round()
    assert world.told == 2, "what is as it should be is left alone"
    assert audit(world.rack)["clean"]
    world.want(TIER, 1)
    world.round()
    assert set(world.claims()) == {0, 1}, "the claim goes once the host holds it no more"
    world.round()
    assert set(world.claims()) == {0}
    assert world.shown() == (1, 1, "")
    world.want(TIER, 0)
    for _ in range(3):
        world.round()
    assert world.claims() == {}
    assert world.shown() is None
    assert world.rack.count(SliceState.FREE) == SLICES


def test_claims_of_hosts_are_somebodys(world):
    """Nothing of them is claimed of the host's own provider."""
    world.want(BASE, 1)
    world.round()
    assert world.round() == []
    assert world.rack.reader.rack().allocations.popitem()[1].unclaimed_seconds is None
    assert audit(world.rack)["findings"] == []


def test_what_placement_does_not_admit_is_waited_for_and_nothing_is_assigned(world, placement):
    others = guest(placement, SLICES - 2)  # one is kept as the free buffer
    world.want(TIER, 2)
    world.round()
    assert world.shown()[:2] == (2, 1)
    assert "Placement has no 1024 MiB of pool pool0 to spare" in world.shown()[2]
    assert [item["code"] for item in audit(world.rack)["findings"]].count("host_slices_differ") == 1
    placement.drop_claim(others)
    world.round()
    assert world.shown() == (2, 2, "")


def test_a_claim_that_was_dropped_is_made_again_before_the_slice_goes(world, placement):
    world.want(TIER, 1)
    world.round()
    placement.drop_claim(world.claims()[0])
    codes = world.round()
    assert codes == []
    assert set(world.claims()) == {0}
    world.round()
    assert world.shown() == (1, 1, "")
    assert world.told == 1


def test_a_node_with_guests_slices_becomes_no_tier_and_gets_no_more_guests(world, placement):
    consumer = guest(placement, 1)
    held = world.rack.online("h1", 1, consumer=consumer)
    world.want(TIER, 1)
    world.want(BASE, 1)
    world.keeper.run()
    assert "has guests' slices of pool pool0" in world.shown()[2]
    assert world.claims() == {}, "nothing is claimed before the guests are gone"
    assert world.shown(BASE) == (1, 1, ""), "a base slice goes with guests"
    view = world.rack.reader.rack()
    world.rack.sync.write(view)
    assert aggregate_uuid(POOL) not in world.aggregates("h1")
    assert aggregate_uuid(POOL) in world.aggregates("h2")
    [pool] = make_snapshot(view, epoch=1, down_seconds=20.0).pools
    assert pool.hosts == ("h2",)
    world.rack.ledger.slices.release("op-1", held.allocation_uuid, "h1")
    world.keeper.run()
    assert world.shown() == (1, 1, "")
    with pytest.raises(PurposeConflict, match="start the guest elsewhere"):
        world.rack.assign("h1", 1)


def test_host_slices_are_no_memory_of_guests(world):
    world.want(BASE, 2)
    world.round()
    assert make_snapshot(world.rack.reader.rack(), epoch=1, down_seconds=20.0).pool_mib_by_host == {}


@pytest.mark.parametrize(
    "error", [oslo_messaging.RemoteError("UnsupportedVersion", "1.4"), oslo_messaging.UnsupportedVersion("1.4")]
)
def test_an_agent_of_the_former_release_is_named(world, error):
    world.refuses = error
    world.want(BASE, 1)
    world.round()
    assert world.shown(BASE) == (1, 0, "upgrade the agent of host h1: it cannot hold slices for its host")


def test_an_agent_that_does_not_answer_is_asked_again(world):
    world.refuses = oslo_messaging.MessagingTimeout("late")
    world.want(BASE, 1)
    world.round()
    assert "the agent of h1 does not answer" in world.shown(BASE)[2]
    assert set(world.claims(BASE)) == {0}
    world.refuses = None
    world.round()
    assert world.shown(BASE) == (1, 1, "")


def test_a_slice_that_stays_in_use_is_told_and_keeps_its_claim(world):
    world.want(TIER, 1)
    world.round()
    world.want(TIER, 0)

    def refuse():
        raise InUse("a process has it")

    world.rack.agents["h1"].before_offline = refuse
    world.round()
    assert world.shown() == (0, 1, "a process has it")
    assert set(world.claims()) == {0}


def test_a_slice_that_does_not_go_offline_is_left_to_its_host(world):
    agent = world.rack.agents["h1"]
    world.want(TIER, 1)
    world.round()
    [uuid] = agent.attached
    agent.stuck = {uuid: "pinned pages"}
    world.want(TIER, 0)
    world.rack.beat()
    world.keeper.run()
    assert agent.offlines == []
    assert world.shown() == (0, 1, f"allocation {uuid} does not go offline: pinned pages")


def test_a_slow_host_keeps_claim_and_slice_until_it_has_let_go(world):
    agent = world.rack.agents["h1"]
    world.want(TIER, 1)
    world.round()
    agent.slow = True
    world.want(TIER, 0)
    world.round()
    assert "is on its way back" in world.shown()[2]
    assert set(world.claims()) == {0}
    [uuid] = agent.attached
    agent.attached.clear()
    agent.released = [uuid]
    world.round()
    world.round()
    assert world.claims() == {}


def test_a_slice_that_the_host_lost_is_replaced(world):
    world.want(TIER, 1)
    world.round()
    world.rack.agents["h1"].attached.clear()
    codes = world.round()
    assert "agent_lost" in codes
    for _ in range(2):
        world.round()
    assert world.shown() == (1, 1, "")
    assert world.rack.count(SliceState.QUARANTINED) == 0


def test_a_disabled_host_gets_none_and_a_fenced_one_claims_none(world):
    world.rack.ledger.hosts.set("h1", False, "maintenance", None)
    world.want(TIER, 1)
    world.round()
    assert world.shown() == (1, 0, "disabled: maintenance")
    world.rack.ledger.hosts.set("h1", True, "", None)
    world.round()
    call(world.rack.endpoint.fence_host, name="h1", reason="it burns", force=True)
    world.rack.agents["h1"].up = False
    world.keeper.run()
    assert world.claims() == {}
    assert world.shown() == (1, 0, "host h1 is fenced")


def test_a_host_with_slices_of_its_own_is_not_removed(world):
    remove = RemovalEndpoint(remover=world.rack.remover, publish=lambda: None, gate=Gate()).remove_host
    world.want(TIER, 1)
    world.round()
    world.rack.ledger.removal._down = -1.0
    with pytest.raises(NotEmpty, match=r"1 slices.*1 tier slices that h1 is to hold"):
        call(remove, name="h1", operation_id="op-1")
    world.want(TIER, 0)
    world.keeper.run()
    world.rack.sanitizer.drain()
    assert set(world.claims()) == {0}
    call(remove, name="h1", operation_id="op-2")
    assert world.claims() == {}, "what was left of its claims goes with it"


def test_another_leader_goes_on_wherever_it_ended(world, placement):
    world.want(TIER, 1)
    assert placement.claim(POOL, RESOURCE_CLASS, {TIER.consumer(0): MIB})
    world.round()
    assert world.shown() == (1, 1, "")


def test_without_placement_the_ledger_alone_counts(rack):
    world = World(rack, None)
    world.want(BASE, 1)
    world.round()
    assert world.shown(BASE) == (1, 1, "")
    world.want(BASE, 0)
    world.round()
    world.round()
    assert world.shown(BASE) is None


def test_a_host_holds_nothing_for_guests(world):
    with pytest.raises(BadRequest, match="tier or base"):
        call(
            world.endpoint.set_host_slices,
            name="h1",
            pool_uuid=POOL,
            purpose="guest",
            count=1,
            generation=None,
            operation_id="op-1",
        )


def test_tiering_is_ordered_kept_and_told_with_each_heartbeat(world):
    with pytest.raises(Conflict, match="has no slices for tiering"):
        world.tier(True)
    world.want(TIER, 1)
    world.tier(True)
    assert world.tiering == [("h1", True)]
    assert world.rack.reader.host("h1").tiering_on is True
    assert [answer["tiering"] for answer in world.rack.beat("h1", "h2")] == [True, None]
    world.tier(False)
    world.tier(None)
    assert [answer["tiering"] for answer in world.rack.beat("h1")] == [None]


def test_no_page_is_demoted_to_guests_memory(world):
    world.rack.online("h1", 1)
    world.want(TIER, 1)
    with pytest.raises(PurposeConflict, match="move these guests away"):
        world.tier(True)
    assert world.tiering == []
    world.tier(False)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (HostUnusable("the pool memory of this host is no memory node"), HostUnusable),
        (oslo_messaging.UnsupportedVersion("1.4"), HostUnusable),
        (oslo_messaging.MessagingTimeout("late"), AgentUnavailable),
    ],
)
def test_an_order_that_the_host_refuses_is_not_kept(world, error, raised):
    world.want(TIER, 1)
    world.refuses = error
    with pytest.raises(raised):
        world.tier(True)
    assert world.rack.reader.host("h1").tiering_on is None
