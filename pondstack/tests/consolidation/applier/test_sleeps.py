"""Plans that put hosts to sleep and wake them, by sleeps of the ledger that a test takes on."""

import pytest

from pondstack.clients.nova import ServerState
from pondstack.domain.host_sleep import SleepState
from pondstack.domain.plan import Action, ActionKind, ActionState, PlanState
from tests.fixtures.ledgers import report
from tests.fixtures.played_plans import VMS, World

S, A, Z = PlanState, ActionState, SleepState
DISABLE = Action(1, ActionKind.DISABLE, "a", "a")
SUSPEND = Action(2, ActionKind.SUSPEND, "a", "a")
WAKE = Action(1, ActionKind.WAKE, "a", "a")
THERE = (Z.LENDING, Z.SUSPENDING, Z.ASLEEP)
BACK = (Z.RECLAIMING, Z.ENABLING)


@pytest.fixture
def world() -> World:
    made = World()
    made.ledger.hosts.heartbeat(report("a", 1, pools=[]))
    return made


def asleep(world: World) -> str:
    """Have host a be asleep by a plan; returns the plan."""
    uuid = world.begin(DISABLE, SUSPEND)
    world.rounds()
    world.sleeps.go("a", *THERE)
    world.rounds()
    return uuid


def test_a_host_that_was_emptied_falls_asleep(world):
    uuid = world.begin(DISABLE, SUSPEND)
    world.rounds()
    assert world.states(uuid) == ["done", "running"], "it waits for the sleep, which it began once"
    world.sleeps.go("a", Z.LENDING, reason="keys are not in escrow yet")
    world.round()
    assert world.plan(uuid).actions[1].state is A.RUNNING
    world.sleeps.go("a", Z.SUSPENDING, Z.ASLEEP)
    world.rounds()
    assert (world.plan(uuid).state, world.states(uuid)) == (S.DONE, ["done", "done"])


def test_the_next_leader_waits_for_the_same_sleep(world):
    uuid = world.begin(DISABLE, SUSPEND)
    world.rounds()
    first = world.sleeps.newest("a")
    world.lead()
    world.rounds()
    assert world.sleeps.newest("a").uuid == first.uuid
    world.sleeps.go("a", *THERE)
    world.rounds()
    assert world.plan(uuid).state is S.DONE


@pytest.mark.parametrize(("there", "end"), [((Z.LENDING, Z.SUSPENDING), Z.ABORTED), (THERE, Z.AWAKE)])
def test_a_host_that_an_operator_wakes_meanwhile_is_not_put_to_sleep_again(world, there, end):
    uuid = world.begin(DISABLE, SUSPEND)
    world.rounds()
    world.sleeps.go("a", *there)
    first = world.sleeps.newest("a").uuid
    world.sleeps.wake("a", "00000000-0000-0000-0000-00000000000b")
    world.rounds()
    world.sleeps.go("a", *BACK, end)
    world.rounds()
    plan = world.plan(uuid)
    assert (plan.state, world.states(uuid), world.sleeps.newest("a").uuid) == (S.FAILED, ["reverted", "failed"], first)
    assert "it was woken by others than this plan, and stays awake" in plan.reason


def test_a_sleep_that_failed_is_tried_again_and_then_given_up(world):
    uuid = world.begin(DISABLE, SUSPEND)
    for _ in range(2):
        world.rounds()
        world.sleeps.go("a", Z.LENDING)
        world.sleeps.go("a", *BACK, reason="it lends nothing", ending=str(Z.FAILED))
        world.rounds()
        assert world.plan(uuid).state is S.RUNNING, "it turns round, which takes its time"
        world.sleeps.go("a", Z.FAILED, reason="it lends nothing")
    world.rounds()
    assert (world.plan(uuid).state, world.states(uuid)) == (S.FAILED, ["reverted", "failed"])
    assert "it lends nothing" in world.plan(uuid).reason
    assert world.nova.services["a"].enabled


def test_what_is_refused_comes_to_nothing(world):
    world.sleeps.refuses = "servers are on host a"
    uuid = world.begin(DISABLE, SUSPEND)
    world.rounds()
    assert (world.plan(uuid).state, world.states(uuid)) == (S.FAILED, ["reverted", "failed"])
    assert world.sleeps.newest("a") is None


def test_a_plan_that_is_cancelled_wakes_whom_it_put_to_sleep(world):
    world.nova.servers[VMS[0]] = ServerState("c", "rebuilding", True)
    uuid = world.begin(DISABLE, SUSPEND, Action(3, ActionKind.MIGRATE, "c", "c", VMS[0], "b", 512))
    world.rounds()
    world.sleeps.go("a", *THERE)
    world.rounds()
    assert world.plan(uuid).actions[1].state is A.DONE
    world.ledger.plans.cancel("00000000-0000-0000-0000-00000000000c", uuid)
    world.rounds()
    assert world.plan(uuid).state is S.CANCELLED
    assert world.sleeps.newest("a").state is Z.WAKING


def test_a_host_that_sleeps_is_woken(world):
    asleep(world)
    uuid = world.begin(WAKE)
    world.rounds()
    assert world.sleeps.newest("a").state is Z.WAKING
    assert world.states(uuid) == ["running"]
    world.sleeps.go("a", *BACK, Z.AWAKE)
    world.rounds()
    assert (world.plan(uuid).state, world.states(uuid)) == (S.DONE, ["done"])


@pytest.mark.parametrize("slept", [False, True])
def test_a_host_that_is_awake_needs_no_waking(world, slept):
    if slept:
        asleep(world)
        world.sleeps.wake("a", "00000000-0000-0000-0000-00000000000d")
        world.sleeps.go("a", *BACK, Z.AWAKE)
    uuid = world.begin(WAKE)
    world.rounds()
    assert (world.plan(uuid).state, world.states(uuid)) == (S.DONE, ["skipped"])
