"""Plans that have hosts lend their memory and stay awake, by lends that a test plays."""

from uuid import uuid4

import pytest

from pondstack.clients.nova import ServerState
from pondstack.domain.plan import Action, ActionKind, PlanState
from tests.fixtures.played_plans import VMS, World

S = PlanState
DISABLE = Action(1, ActionKind.DISABLE, "a", "a")
DELEGATE = Action(2, ActionKind.DELEGATE, "a", "a", mib=4096)


@pytest.fixture
def world() -> World:
    return World()


def test_a_host_that_was_emptied_lends_and_stays_disabled(world):
    uuid = world.begin(DISABLE, DELEGATE)
    world.rounds()
    assert world.states(uuid) == ["done", "running"]
    world.lends.end(1024)
    world.rounds()
    assert (world.plan(uuid).state, world.states(uuid)) == (S.DONE, ["done", "done"])
    assert world.plan(uuid).actions[1].reason == "it lends 1024 MiB"
    assert not world.nova.services["a"].enabled
    assert len(world.lends.begun) == 1
    assert [plan.state for plan in world.ended] == [S.DONE], "who counts plans hears of the end, once"
    assert [str(action.kind) for action in world.settled] == ["disable", "delegate"]


def test_the_next_leader_waits_for_the_same_lend(world):
    uuid = world.begin(DISABLE, DELEGATE)
    world.rounds()
    world.lead()
    world.rounds()
    assert len(world.lends.begun) == 1
    world.lends.end(64)
    world.rounds()
    assert world.plan(uuid).state is S.DONE


@pytest.mark.parametrize("refused", [True, False])
def test_a_host_that_lends_nothing_is_enabled_again(world, refused):
    world.lends.refuses = "host a has no memory to spare" * refused
    uuid = world.begin(DISABLE, DELEGATE)
    for _ in range(3):
        world.rounds()
        world.lends.end(0, "host a has no memory to spare")
    world.rounds()
    assert (world.plan(uuid).state, world.states(uuid)) == (S.FAILED, ["reverted", "failed"])
    assert "no memory to spare" in world.plan(uuid).reason
    assert world.nova.services["a"].enabled
    assert world.lends.taken_back == [], "there is nothing to take back"


def test_a_plan_that_is_cancelled_takes_back_what_was_lent_by_it(world):
    world.nova.servers[VMS[0]] = ServerState("c", "rebuilding", True)
    uuid = world.begin(DISABLE, DELEGATE, Action(3, ActionKind.MIGRATE, "c", "c", VMS[0], "b", 512))
    world.rounds()
    world.lends.end(1024)
    world.rounds()
    world.ledger.plans.cancel(str(uuid4()), uuid)
    world.rounds()
    assert world.plan(uuid).state is S.CANCELLED
    assert [host for host, _ in world.lends.taken_back] == ["a"]
    assert set(world.lends.begun) == {operation for _, operation in world.lends.taken_back}
    assert world.nova.services["a"].enabled
