"""Each rule of the reconciler: what it finds, what it does about it, and what it must leave alone."""

from dataclasses import replace

import pytest

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.findings import Severity
from pondstack.controller.reconcile.rules.rules import decide
from pondstack.devices.base import Permission
from pondstack.domain.causes import Cause
from pondstack.domain.model import Extent, PoolState
from pondstack.domain.purpose import Purpose
from pondstack.domain.states import SliceState
from pondstack.tests.controller.builders import IDLE, POOL, REPORT_AGE, Builder

OVERDUE = 31.0
JUST_NOW = REPORT_AGE + 0.5


def found(builder, **limits):
    return {finding.code: finding for finding in decide(builder.observation(**limits))}


def test_a_rack_that_agrees_has_no_finding():
    assert found(Builder().allocate()) == {}


# Claims


def test_an_unclaimed_allocation_is_offlined_after_the_grace():
    finding = found(Builder().allocate(unclaimed=OVERDUE, in_use=False))["unclaimed"]
    assert finding.action == actions.Offline("h1", "a1")
    assert finding.host == "h1"


def test_an_unclaimed_allocation_that_never_came_up_is_offlined_too():
    built = Builder().allocate(state=SliceState.ASSIGNING, unclaimed=OVERDUE, attached=False)
    assert found(built)["unclaimed"].action == actions.Offline("h1", "a1")


def test_within_the_grace_nothing_happens():
    assert found(Builder().allocate(unclaimed=29.0, in_use=False)) == {}


def test_a_guest_that_still_runs_keeps_its_slices():
    finding = found(Builder().allocate(unclaimed=OVERDUE, in_use=True))["unclaimed_in_use"]
    assert (finding.action, finding.severity) == (None, Severity.INFO)


def test_without_placement_nothing_is_unclaimed():
    built = Builder(placement=False).allocate(unclaimed=OVERDUE, in_use=False)
    assert "unclaimed" not in found(built)


def test_a_claim_needs_the_host_too():
    built = Builder().allocate()
    built.claims["vm1"] = ("h2", 2048)
    assert not built.observation().claimed["a1"]


def test_of_two_allocations_of_one_consumer_on_a_host_the_newer_is_claimed():
    newer = replace(IDLE, uuid="a2", extents=(Extent(4, 2),))
    observation = Builder().allocate(age=500).allocate(newer, age=5).observation()
    assert dict(observation.claimed) == {"a1": False, "a2": True}


def moving(**changes):
    """Return a world in which vm1 moves from h1: the migration has its claim there, and it claims on h2."""
    built = Builder().allocate(unclaimed=OVERDUE, in_use=False)
    built.claims["vm1"] = ("h2", 2048)
    built.claims["migration"] = ("h1", 2048)
    for name, value in changes.items():
        setattr(built, name, value)
    return built


def test_the_claim_of_a_migration_counts_at_the_source():
    """However long it lasts, and whether its guest runs there or is off for a moment."""
    built = moving()
    assert built.observation().holders == {"a1": "migration"}
    assert set(found(built)) == {"claim_without_slices"}
    assert set(found(moving().silence())) == {"claim_without_slices", "agent_down"}


def test_both_allocations_of_a_move_are_claimed_and_the_amounts_agree():
    built = moving().allocate(replace(IDLE, uuid="a2", host="h2", extents=(Extent(4, 2),)))
    assert dict(built.observation().claimed) == {"a1": True, "a2": True}
    assert found(built) == {}


@pytest.mark.parametrize(
    ("host", "mib", "local_mib"), [("h2", 2048, 2048), ("h1", 1024, 2048), ("h1", 2048, 4096)], ids=str
)
def test_a_claim_of_something_else_is_no_migrations(host, mib, local_mib):
    built = moving(local_mib=local_mib)
    built.claims["migration"] = (host, mib)
    assert "unclaimed" in found(built)


def test_a_claim_of_a_guest_with_slices_is_no_migrations():
    other = replace(IDLE, uuid="a2", consumer_uuid="migration", extents=(Extent(4, 2),))
    assert "unclaimed" in found(moving().allocate(other))


def test_an_instance_that_is_gone_has_no_migration():
    """A claim like its own is that of a guest that starts."""
    built = moving()
    del built.claims["vm1"]
    assert "unclaimed" in found(built)


@pytest.mark.parametrize(("remote", "like"), [({"migration": 512}, True), ({"migration": 256}, False), ({}, False)])
def test_what_is_remote_of_a_moving_guest_is_none_of_its_pool_memory(remote, like):
    """Its claim at the source has so much less of that host."""
    built = moving(local_mib=2048 - 512, remote=remote)
    assert built.observation().holders == ({"a1": "migration"} if like else {})


def test_two_like_instances_may_move_from_one_host():
    built = moving().allocate(replace(IDLE, uuid="a2", consumer_uuid="vm2", extents=(Extent(4, 2),)), unclaimed=OVERDUE)
    built.claims |= {"vm2": ("h2", 2048), "other": ("h1", 2048)}
    assert built.observation().holders == {"a1": "migration", "a2": "other"}


def test_amounts_that_differ_and_claims_without_slices_are_told():
    built = Builder().allocate()
    built.claims["vm1"] = ("h1", 1024)
    built.claims["vm9"] = ("h2", 1024)
    codes = found(built)
    assert codes["claim_differs"].severity is Severity.WARNING
    assert codes["claim_without_slices"].severity is Severity.INFO


# Agent down


def test_unclaimed_with_a_silent_agent_begins_the_release():
    finding = found(Builder().allocate(unclaimed=OVERDUE).silence())["unclaimed_agent_down"]
    assert isinstance(finding.action, actions.BeginRelease)


def test_releasing_with_a_silent_agent_is_quarantined_never_freed():
    built = Builder().allocate(state=SliceState.RELEASING, unclaimed=OVERDUE).silence()
    finding = found(built)["releasing_agent_down"]
    assert isinstance(finding.action, actions.QuarantineAllocation)
    assert (finding.action.cause, finding.action.reason) == (Cause.AGENT_DOWN, finding.detail)


def test_releasing_with_a_live_agent_asks_it():
    built = Builder().allocate(state=SliceState.RELEASING, unclaimed=OVERDUE, in_use=False)
    assert found(built)["releasing"].action == actions.Offline("h1", "a1")


def test_claimed_slices_of_a_silent_host_are_left_alone():
    assert set(found(Builder().allocate().silence())) == {"agent_down"}


def test_quarantined_slices_come_back_when_the_host_reports_them_gone():
    built = Builder().allocate(state=SliceState.QUARANTINED, unclaimed=OVERDUE, attached=False)
    finding = found(built)["explained"]
    assert finding.action == actions.AuditSlices(POOL, (0, 1), "h1 reports that it does not hold them")
    assert finding.host == "h1"


def test_what_a_host_was_to_hold_for_itself_comes_back_though_it_is_claimed():
    """Its keeper claims it, and asks for another one; no instance counts on it."""
    item = replace(IDLE, purpose=Purpose.TIER)
    built = Builder().allocate(item, state=SliceState.QUARANTINED, attached=False)
    assert found(built)["explained"].host == "h1"
    assert "explained" not in found(built.silence())


@pytest.mark.parametrize(
    "change",
    [
        lambda built: built.silence(),
        lambda built: built.attach("h1", "other-name", IDLE.extents),
        lambda built: built.put(0, SliceState.QUARANTINED, age=JUST_NOW, host="h1", allocation="a1").put(
            1, SliceState.QUARANTINED, age=JUST_NOW, host="h1", allocation="a1"
        ),
        lambda built: built.claims.update(vm1=("h1", 2048)) or built,
    ],
    ids=["silent", "still attached under another name", "report is older", "still claimed"],
)
def test_quarantined_slices_stay_without_proof(change):
    built = Builder().allocate(state=SliceState.QUARANTINED, unclaimed=OVERDUE, attached=False)
    assert "explained" not in found(change(built))


def test_quarantined_and_still_attached_is_offlined_when_idle():
    built = Builder().allocate(state=SliceState.QUARANTINED, unclaimed=OVERDUE, in_use=False)
    assert found(built)["quarantined_attached"].action == actions.Offline("h1", "a1")


def test_quarantined_and_in_use_is_only_told():
    built = Builder().allocate(state=SliceState.QUARANTINED, unclaimed=OVERDUE, in_use=True)
    assert found(built)["quarantined_in_use"].action is None


def test_a_slice_that_could_not_be_sanitised_waits_for_an_operator():
    finding = found(Builder().put(3, SliceState.QUARANTINED, cause=Cause.SANITIZE_FAILED, host="h1"))["quarantined"]
    assert finding.operator
    assert finding.action == actions.AuditSlices(POOL, (3,), "an operator asked for it")


# Reports


def test_slices_that_the_ledger_takes_for_free_are_quarantined():
    finding = found(Builder().attach("h2", "stranger", (Extent(5, 2),)))["unknown_attachment"]
    assert isinstance(finding.action, actions.QuarantineSlices)
    assert (finding.action.indexes, finding.action.host, finding.action.allocation_uuid) == ((5, 6), "h2", "stranger")


def test_a_report_that_may_be_older_than_the_release_proves_nothing():
    built = Builder().attach("h2", "stranger", (Extent(5, 1),)).put(5, SliceState.SANITIZING, age=JUST_NOW)
    assert "unknown_attachment" not in found(built)


def test_an_old_report_of_a_silent_host_proves_nothing():
    assert "unknown_attachment" not in found(Builder().attach("h2", "stranger", (Extent(5, 2),)).silence("h2"))


def test_a_stranger_on_owned_slices_is_offlined_and_the_owner_kept():
    codes = found(Builder().allocate().attach("h2", "stranger", (Extent(1, 2),)))
    assert codes["conflicting_attachment"].action == actions.Offline("h2", "stranger")
    assert not any(isinstance(finding.action, actions.QuarantineAllocation) for finding in codes.values())


def test_slices_that_do_not_exist_are_told():
    assert found(Builder().attach("h2", "stranger", (Extent(7, 2),)))["unknown_slices"].severity is Severity.CRITICAL


def test_online_and_claimed_but_not_reported_is_quarantined():
    finding = found(Builder().allocate(attached=False))["agent_lost"]
    assert isinstance(finding.action, actions.QuarantineAllocation)
    assert finding.host == "h1"


def test_a_report_older_than_the_acknowledgement_does_not_lose_it():
    assert found(Builder().allocate(attached=False, age=JUST_NOW)) == {}


# Assignments


def test_an_acknowledgement_that_was_lost_is_taken_from_the_report():
    assert found(Builder().allocate(state=SliceState.ASSIGNING))["acknowledge_lost"].action == actions.Acknowledge(
        "h1", "a1"
    )


def test_an_abandoned_assignment_is_offlined():
    built = Builder().allocate(state=SliceState.ASSIGNING, attached=False)
    assert found(built)["assign_abandoned"].action == actions.Offline("h1", "a1")


def test_an_assignment_under_way_is_left_alone():
    assert found(Builder().allocate(state=SliceState.ASSIGNING, attached=False, age=60)) == {}


# Devices


def test_a_permission_on_a_free_slice_quarantines_it():
    built = Builder()
    built.permissions[4] = Permission("h2", "gone", 1)
    action = found(built)["permission_left"].action
    assert isinstance(action, actions.QuarantineSlices)
    assert (action.indexes, action.host) == ((4,), "h2")


def test_a_missing_permission_is_granted_again():
    built = Builder().allocate()
    del built.permissions[1]
    assert found(built)["permission_missing"].action == actions.Regrant("a1")


def test_somebody_elses_permission_quarantines_the_allocation():
    built = Builder().allocate()
    built.permissions[0] = Permission("h2", "other", 1)
    assert isinstance(found(built)["permission_differs"].action, actions.QuarantineAllocation)


def test_slices_that_just_changed_may_differ_from_the_table():
    built = Builder().allocate(state=SliceState.ASSIGNING, attached=False, age=JUST_NOW)
    built.permissions.clear()
    assert found(built) == {}


def test_slices_that_stay_unsanitised_and_failed_pools_are_told():
    codes = found(Builder(pool_state=PoolState.FAILED).put(2, SliceState.SANITIZING))
    assert {"sanitizing_stuck", "pool_failed"} <= set(codes)


def test_a_broken_invariant_is_told():
    built = Builder().put(2, SliceState.FREE, host="h1")
    assert found(built)["ledger_owner_left"].severity is Severity.CRITICAL
