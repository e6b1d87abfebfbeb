"""Memory that does not go offline: set aside with its host's reason, not commanded, back by its host's word."""

from dataclasses import replace

import pytest

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.rules.rules import decide
from pondstack.domain.causes import Cause
from pondstack.domain.states import SliceState
from pondstack.rpc.wire import Report
from pondstack.tests.controller.builders import Builder
from pondstack.tests.controller.conftest import POOL
from pondstack.tests.controller.reconcile.test_reconciler import NOW, boot, nova

__all__ = ["nova"]

WHY = "3 of 8 memory blocks are still in use"
OVERDUE = 31.0


def found(builder, **limits):
    return {finding.code: finding for finding in decide(builder.observation(**limits))}


def stuck(**values):
    built = Builder().allocate(in_use=False, **values)
    built.stuck["h1"] = {"a1": WHY}
    return built


# The rules


@pytest.mark.parametrize("state", [SliceState.ASSIGNING, SliceState.ONLINE, SliceState.RELEASING])
@pytest.mark.parametrize("unclaimed", [None, OVERDUE], ids=["claimed", "unclaimed"])
def test_its_slices_are_set_aside_with_the_reason_and_the_agent_is_not_commanded(state, unclaimed):
    findings = decide(stuck(state=state, unclaimed=unclaimed).observation())
    assert {finding.code for finding in findings} == {"offline_stuck"}
    assert findings[0].host == "h1"
    assert findings[0].action == actions.QuarantineAllocation(
        "a1", Cause.OFFLINE_STUCK, f"h1 cannot take it offline: {WHY}"
    )


def test_what_a_silent_host_said_last_sets_nothing_aside():
    assert "offline_stuck" not in found(stuck().silence())


def test_once_aside_it_is_told_of_and_left_to_its_agent():
    findings = found(stuck(state=SliceState.QUARANTINED))
    assert findings["offline_stuck"].action is None
    assert WHY in findings["offline_stuck"].detail
    assert all(finding.action is None for finding in findings.values())


def test_it_is_not_taken_back_for_a_new_claim():
    """Nobody may use it any more on its host, whatever Placement says."""
    built = stuck(state=SliceState.RELEASING)
    assert found(built)["offline_stuck"].action
    for index in (0, 1):
        built.put(index, SliceState.QUARANTINED, host="h1", allocation="a1", cause=Cause.AGENT_DOWN)
    assert "claimed_again" not in found(built)


def test_a_fenced_host_is_not_commanded_either():
    built = stuck(state=SliceState.QUARANTINED).fence()
    assert found(built)["fenced_attached"].action is None


# End to end


@pytest.fixture
def held(placed, nova):
    """An allocation whose guest is gone and whose memory does not go offline; its host has said so."""
    grant = boot(placed, nova)
    agent = placed.agents["h1"]
    agent.idle()
    nova.drop(grant.consumer_uuid)
    agent.stuck = {grant.allocation_uuid: WHY}
    placed.beat()
    return grant


def test_the_slices_show_the_reason(placed, held):
    assert placed.reconcile(**NOW).count("offline_stuck") == 1
    aside = [item for item in placed.reader.slices(POOL) if item.state == "quarantined"]
    assert [item.host for item in aside] == ["h1", "h1"]
    assert {item.reason for item in aside} == {f"offline_stuck: h1 cannot take it offline: {WHY}"}
    before = placed.states()
    placed.reconcile(**NOW)
    assert placed.states() == before
    assert placed.agents["h1"].offlines == []
    assert held.allocation_uuid in placed.agents["h1"].attached


@pytest.mark.usefixtures("held")
def test_what_went_offline_before_it_was_asked_again_is_not_set_aside(placed):
    placed.agents["h1"].stuck.clear()
    assert "offline_stuck" not in placed.reconcile(**NOW)
    assert placed.count("quarantined") == 0


@pytest.mark.parametrize("told", ["call", "report"])
def test_back_by_way_of_the_sanitiser_when_it_went_offline(placed, held, told):
    placed.reconcile(**NOW)
    agent, uuid = placed.agents["h1"], held.allocation_uuid
    agent.stuck.clear()
    if told == "call":
        placed.release(uuid)
    else:
        agent.let_go(uuid)
        placed.beat()
    assert placed.count("quarantined") == 0
    placed.reconcile(**NOW)
    assert placed.count("free") == 8


@pytest.mark.usefixtures("held")
def test_an_audit_names_it_and_an_operators_repair_does_not_force_it(placed):
    placed.reconcile(**NOW)
    findings = {item["code"]: item for item in placed.reconciler.audit(repair=True)}
    assert WHY in findings["offline_stuck"]["detail"]
    assert placed.count("quarantined") == 2
    assert placed.agents["h1"].offlines == []


@pytest.mark.usefixtures("held")
def test_an_agent_of_the_former_release_says_nothing_of_it(placed):
    wire = replace(placed.agents["h1"].report(), stuck={}).to_wire()
    del wire["stuck"]
    assert Report.from_wire(wire).stuck == {}
    placed.ledger.hosts.heartbeat(wire)
    assert placed.reader.rack().hosts["h1"].stuck == {}
