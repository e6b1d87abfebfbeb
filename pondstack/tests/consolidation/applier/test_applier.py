"""Plans carried out against a Nova that a test plays: each refusal, a cancel and a fail-over at each step."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from pondstack.clients.nova import ServerState
from pondstack.domain.errors import NotLeader
from pondstack.domain.plan import Action, ActionKind, ActionState, PlanKind, PlanState
from tests.fixtures.played_plans import VMS, World

S, A = PlanState, ActionState


@pytest.fixture
def world() -> World:
    return World()


def moves(destination: str = "b") -> list[Action]:
    return [Action(number, ActionKind.MIGRATE, "a", "a", uuid, destination, 512) for number, uuid in enumerate(VMS, 2)]


DISABLE = Action(1, ActionKind.DISABLE, "a", "a")
ENABLE = Action(1, ActionKind.ENABLE, "a", "a")


def test_a_host_is_disabled_and_then_emptied(world):
    uuid = world.begin(DISABLE, *moves())
    world.round()
    assert not world.nova.services["a"].enabled
    assert world.nova.services["a"].disabled_reason == f"pondstack plan {uuid}"
    assert world.nova.asked == []
    world.rounds()
    assert world.nova.asked == [(vm, "svc-b") for vm in VMS]
    assert {state.host for state in world.nova.servers.values()} == {"b"}
    assert (world.plan(uuid).state, world.states(uuid)) == (S.DONE, ["done"] * 4)
    assert not world.nova.services["a"].enabled


def test_so_many_migrations_at_a_time(world):
    world.begin(DISABLE, *moves())
    for _ in range(6):
        world.round()
    assert len(world.nova.asked) == 2
    world.nova.finish()
    world.rounds()
    assert len(world.nova.asked) == 3


def test_so_many_migrations_an_hour_and_drains_beside_them(world):
    world.pace = replace(world.pace, migrations_per_hour=1)
    waits = world.begin(DISABLE, *moves())
    world.rounds()
    assert len(world.nova.asked) == 1
    until = re.fullmatch(
        r"\[consolidation\] migrations_per_hour \(1\) is used up; the next may begin at (.*)Z", world.plan(waits).reason
    )
    assert until
    moment = datetime.fromisoformat(until[1]).replace(tzinfo=UTC)
    assert 3500 < moment.timestamp() - world.store.clock() <= 3600
    world.pace = replace(world.pace, migrations_per_hour=60)
    world.round()
    assert world.plan(waits).reason == ""
    world.pace = replace(world.pace, migrations_per_hour=0)
    other = world.begin(replace(DISABLE, chain="c", host="c"), kind=PlanKind.DRAIN)
    world.rounds()
    assert world.plan(other).state is S.DONE


def test_what_nova_refuses_is_tried_again_and_then_undone(world):
    world.nova.refuses = True
    uuid = world.begin(DISABLE, *moves())
    world.rounds()
    plan = world.plan(uuid)
    assert plan.state is S.FAILED
    assert "No valid host was found" in plan.reason
    assert [action.tries for action in plan.actions][1:3] == [2, 2]
    assert world.states(uuid)[0] == "reverted"
    assert world.nova.services["a"].enabled


def test_a_server_that_nova_did_not_move(world):
    world.nova.stays = True
    uuid = world.begin(DISABLE, *moves())
    world.rounds(20)
    assert world.plan(uuid).state is S.FAILED
    assert world.nova.services["a"].enabled
    assert max(world.nova.asked.count(item) for item in world.nova.asked) == 2


def test_other_chains_go_on(world):
    """A host that cannot be disabled is left; the other one is."""
    world.nova.services["a"] = replace(world.nova.services["a"], enabled=False, disabled_reason="a disk")
    uuid = world.begin(DISABLE, *moves(), Action(9, ActionKind.DISABLE, "c", "c"))
    world.rounds()
    assert world.plan(uuid).state is S.FAILED
    assert world.states(uuid) == ["failed", "skipped", "skipped", "skipped", "done"]
    assert world.nova.services["a"].disabled_reason == "a disk"
    assert not world.nova.services["c"].enabled
    assert "a disk" in world.plan(uuid).reason


def test_a_drain_takes_a_host_that_others_disabled_and_leaves_it_so(world):
    world.nova.services["a"] = replace(world.nova.services["a"], enabled=False, disabled_reason="a disk")
    uuid = world.begin(DISABLE, *moves(""), kind=PlanKind.DRAIN)
    world.rounds()
    assert world.plan(uuid).state is S.DONE
    assert world.nova.asked == [(vm, None) for vm in VMS]
    assert world.nova.services["a"].disabled_reason == "a disk"


def test_some_hosts_stay_awake(world):
    world.least_awake = 3
    uuid = world.begin(DISABLE)
    world.rounds()
    assert world.plan(uuid).state is S.FAILED
    assert "3 hosts are awake" in world.plan(uuid).reason
    assert world.nova.services["a"].enabled


def test_a_destination_that_was_disabled_meanwhile_gets_nothing(world):
    uuid = world.begin(DISABLE, *moves("c"))
    world.nova.disable(world.nova.services["c"], "a disk")
    world.rounds()
    assert world.nova.asked == []
    assert world.plan(uuid).state is S.FAILED


def test_a_server_that_cannot_move_for_where_its_memory_is_is_not_asked_to(world):
    world.nova.servers[VMS[0]] = ServerState("a", "", True, {"pond:swap_mb": "512"})
    world.why_it_stays = lambda _uuid, host, specs: f"it has a swap disk on {host}" if specs else ""
    uuid = world.begin(DISABLE, *moves())
    world.rounds()
    plan = world.plan(uuid)
    assert plan.state is S.FAILED
    assert (plan.actions[1].state, plan.actions[1].reason) == ("failed", "it has a swap disk on a")
    assert VMS[0] not in [server for server, _ in world.nova.asked]
    assert world.nova.services["a"].enabled


def test_a_server_that_is_gone_or_elsewhere_needs_nothing(world):
    uuid = world.begin(DISABLE, *moves())
    world.nova.servers[VMS[0]] = ServerState("c", "", True)
    del world.nova.servers[VMS[1]]
    world.rounds()
    assert world.states(uuid) == ["done", "skipped", "skipped", "done"]
    assert world.plan(uuid).state is S.DONE


def test_a_server_that_nova_works_on_is_waited_for(world):
    world.nova.servers[VMS[0]] = ServerState("a", "resize_prep", True)
    uuid = world.begin(DISABLE, *moves())
    world.rounds()
    assert world.states(uuid) == ["done", "pending", "done", "done"]
    assert "resize_prep" in world.plan(uuid).actions[1].reason
    world.nova.servers[VMS[0]] = ServerState("a", "", True)
    world.rounds()
    assert world.plan(uuid).state is S.DONE


def test_but_not_for_ever(world):
    world.nova.servers[VMS[0]] = ServerState("a", "resize_prep", True)
    uuid = world.begin(DISABLE, *moves())
    world.rounds()
    world.clock = 601.0
    world.rounds()
    assert world.plan(uuid).state is S.FAILED
    assert world.nova.services["a"].enabled


@pytest.mark.parametrize("steps", range(8))
def test_cancelled_at_each_step_it_is_undone(world, steps):
    uuid = world.begin(DISABLE, *moves())
    for step in range(steps):
        world.round()
        if step % 2:
            world.nova.finish()
    if world.plan(uuid).state is S.DONE:
        return
    world.ledger.plans.cancel(str(uuid4()), uuid)
    asked = len(world.nova.asked)
    world.rounds()
    assert world.plan(uuid).state is S.CANCELLED
    assert world.nova.services["a"].enabled
    assert len(world.nova.asked) == asked
    assert not any(state.busy for state in world.nova.servers.values())


@pytest.mark.parametrize("steps", range(8))
def test_the_next_leader_goes_on_at_each_step(world, steps):
    uuid = world.begin(DISABLE, *moves())
    for _ in range(steps):
        world.round()
    former = world.applier
    world.lead()
    unattended = world.ledger.plans.unattended()
    if unattended and steps in (0, 1):
        with pytest.raises(NotLeader):
            former.run(unattended)
    world.rounds()
    assert world.plan(uuid).state is S.DONE
    assert sorted(vm for vm, _ in world.nova.asked) == sorted(VMS)


def test_a_leader_that_died_before_it_asked_nova_is_followed(world):
    """The action is written down as begun, and the server is where it was: it is asked for once more."""
    uuid = world.begin(DISABLE, *moves())
    world.round()
    world.round()
    action = world.plan(uuid).actions[1]
    world.ledger.plans.note(world.plan(uuid), action, replace(action, state=A.RUNNING, tries=1))
    world.lead()
    world.rounds()
    assert world.plan(uuid).state is S.DONE
    assert [vm for vm, _ in world.nova.asked].count(VMS[0]) == 1


def test_while_nova_is_silent_a_plan_waits_and_says_so(world):
    uuid = world.begin(DISABLE)
    world.nova.silent = True
    world.rounds()
    assert (world.plan(uuid).state, world.plan(uuid).reason) == (S.RUNNING, "Nova does not answer")
    world.nova.silent = False
    world.rounds()
    assert world.plan(uuid).state is S.DONE


def test_frozen_it_begins_nothing_more(world):
    uuid = world.begin(DISABLE, *moves())
    for _ in range(3):
        world.round()
    world.ledger.plans.freeze(str(uuid4()), "an upgrade")
    asked = len(world.nova.asked)
    world.rounds()
    assert len(world.nova.asked) == asked
    assert "frozen: an upgrade" in world.plan(uuid).reason
    world.ledger.plans.freeze(str(uuid4()), None)
    world.rounds()
    assert world.plan(uuid).state is S.DONE


def test_frozen_it_does_not_even_disable_a_host(world):
    world.begin(DISABLE)
    world.ledger.plans.freeze(str(uuid4()), "an upgrade")
    world.rounds()
    assert world.nova.services["a"].enabled


@pytest.mark.parametrize(("reason", "state"), [("pondstack plan x", S.DONE), ("a disk", S.FAILED)])
def test_a_restoration_enables_what_a_plan_disabled(world, reason, state):
    world.nova.disable(world.nova.services["a"], reason)
    uuid = world.begin(ENABLE, kind=PlanKind.RESTORE)
    world.rounds()
    assert world.plan(uuid).state is state
    assert world.nova.services["a"].enabled is (state is S.DONE)


def test_a_host_that_nova_does_not_know_fails_its_chain(world):
    uuid = world.begin(replace(DISABLE, chain="z", host="z"))
    world.rounds()
    assert world.plan(uuid).state is S.FAILED
    assert "no hypervisor z" in world.plan(uuid).reason
