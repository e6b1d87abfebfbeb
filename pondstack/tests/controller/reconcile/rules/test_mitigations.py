"""What is being mitigated is left alone, by whatever its claim looks like; what is stuck is told."""

from dataclasses import replace

import pytest

from pondstack.controller.reconcile.actions import Offline
from pondstack.controller.reconcile.rules.rules import decide
from pondstack.domain.mitigation import Mitigation, MitigationMethod, MitigationState, MitigationTrigger, Work
from pondstack.domain.states import SliceState
from pondstack.tests.controller.builders import IDLE, Builder

S = MitigationState
OPEN = Mitigation(
    "m1",
    IDLE.consumer_uuid,
    IDLE.host,
    "blue",
    MitigationMethod.COPY,
    S.MOVING,
    MitigationTrigger.OPERATOR,
    False,
    IDLE.pool_mib,
    0,
    work=Work(IDLE.guest_mib),
)


def found(builder, item=OPEN, **limits):
    """Return what is found while a mitigation is open."""
    return {finding.code: finding for finding in decide(replace(builder.observation(**limits), mitigations=(item,)))}


@pytest.mark.parametrize("state", [S.CLAIMING, S.MOVING, S.REWRITING, S.RELEASING, S.UNDOING])
def test_slices_that_it_needs_are_not_taken(state):
    builder = Builder().allocate(unclaimed=1000.0, in_use=False)
    builder.claims[IDLE.consumer_uuid] = (IDLE.host, 0)
    assert "unclaimed" in {finding.code for finding in decide(builder.observation())}
    assert not found(builder, replace(OPEN, state=state))


def test_slices_on_their_way_back_are_not_given_back_to_who_claims_them_still():
    builder = Builder().allocate(state=SliceState.RELEASING)
    assert "claimed_again" in {finding.code for finding in decide(builder.observation())}
    assert not found(builder, replace(OPEN, state=S.RELEASING))
    builder.stuck = {IDLE.host: {IDLE.uuid: "pages are pinned"}}
    assert found(builder, replace(OPEN, state=S.RELEASING)).keys() == {"offline_stuck"}


def test_those_of_another_host_are_as_any():
    builder = Builder().allocate(replace(IDLE, host="h2"), unclaimed=1000.0, in_use=False)
    assert "unclaimed" in found(builder)


@pytest.mark.parametrize("method", sorted(MitigationMethod))
@pytest.mark.parametrize("state", [S.RELEASING, S.UNCLAIMING])
def test_what_a_guest_left_behind_where_it_moved_from_is_taken_offline(state, method):
    """Nova's release failed there, as while the agent was down: nobody but the reconciler repeats it."""
    builder = Builder().allocate(unclaimed=1000.0, in_use=False)
    builder.claims[IDLE.consumer_uuid] = ("h2", 0)
    item = replace(OPEN, state=state, method=method)
    assert found(builder, item)["unclaimed"].action == Offline(IDLE.host, IDLE.uuid, 1)
    builder.placement = False
    assert not found(builder, item)


@pytest.mark.parametrize("state", [S.CLAIMING, S.MOVING, S.REWRITING, S.UNDOING])
def test_what_may_still_be_moved_back_is_not_taken(state):
    """While Nova moves a guest its own claim is the destination's."""
    builder = Builder().allocate(unclaimed=1000.0, in_use=False)
    builder.claims[IDLE.consumer_uuid] = ("h2", 0)
    assert not found(builder, replace(OPEN, state=state, method=MitigationMethod.MIGRATE))


def test_a_claim_beside_slices_that_are_back_is_no_finding():
    builder = Builder()
    builder.claims[IDLE.consumer_uuid] = (IDLE.host, IDLE.pool_mib)
    assert {finding.code for finding in decide(builder.observation())} == {"claim_without_slices"}
    assert not found(builder, replace(OPEN, state=S.UNCLAIMING))


def test_a_move_of_a_server_whose_memory_is_all_claimed_keeps_its_slices():
    """Nova has put the claim aside, under the migration's name, for more local memory than the slices leave."""
    builder = Builder().allocate(claimed=False)
    builder.local_mib = IDLE.guest_mib
    builder.claims["migration"] = (IDLE.host, IDLE.pool_mib)
    builder.claims[IDLE.consumer_uuid] = ("h2", IDLE.pool_mib)
    plain = builder.observation()
    assert not plain.claimed[IDLE.uuid]
    assert replace(plain, mitigations=(OPEN,)).claimed[IDLE.uuid]


@pytest.mark.parametrize(
    ("state", "seconds", "reason", "stuck"),
    [
        (S.REWRITING, 901.0, "libvirt does not answer", True),
        (S.REWRITING, 899.0, "libvirt does not answer", False),
        (S.MOVING, 5000.0, "", False),
        (S.MOVING, 5000.0, "the agent of h1 does not answer", True),
    ],
)
def test_what_does_not_come_further_is_told(state, seconds, reason, stuck):
    item = replace(OPEN, state=state, state_seconds=seconds, reason=reason)
    findings = found(Builder(), item)
    assert ("mitigation_stuck" in findings) is stuck
    if stuck:
        assert reason in findings["mitigation_stuck"].detail
