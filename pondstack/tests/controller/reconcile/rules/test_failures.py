"""What becomes of a failed device's and of a fenced host's slices, rule by rule."""

import pytest

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.rules.rules import decide
from pondstack.domain.causes import Cause
from pondstack.domain.model import Allocation, Extent, PoolState
from pondstack.domain.states import SliceState
from pondstack.tests.controller.builders import IDLE, POOL, Builder

QUARANTINED = SliceState.QUARANTINED
ABOUT = "pool0: its device does not answer"
FIRST = {"cause": Cause.DEVICE_FAILED, "failure": 1}
OTHER = Allocation("a2", "vm2", "h2", POOL, (Extent(4, 1),), guest_mib=4096)


def found(built, **limits):
    return {finding.code: finding for finding in decide(built.observation(**limits))}


def aside(built, item=IDLE, cause=Cause.DEVICE_FAILED, failure=1):
    """Set an allocation's slices aside."""
    for index in range(item.extents[0].start, item.extents[0].start + item.extents[0].count):
        built.put(index, QUARANTINED, host=item.host, allocation=item.uuid, cause=cause, failure=failure)
    return built


# A device


def test_each_guest_on_a_failed_device_is_named_set_aside_and_told():
    findings = [
        f for f in decide(Builder().allocate().allocate(OTHER).fail().observation()) if f.code == "memory_failed"
    ]
    assert [finding.action for finding in findings] == [
        actions.FailAllocation("a1", 1, ABOUT, notify=True),
        actions.FailAllocation("a2", 1, ABOUT, notify=True),
    ]
    assert "instance vm1 on h1 has 2048 MiB" in findings[0].detail


@pytest.mark.parametrize(
    "state", [SliceState.ASSIGNING, SliceState.ONLINE, SliceState.RELEASING, SliceState.QUARANTINED]
)
def test_in_whatever_state_it_is(state):
    assert isinstance(found(Builder().allocate(state=state).fail())["memory_failed"].action, actions.FailAllocation)


def test_what_was_set_aside_and_told_goes_on_being_named_only():
    finding = found(aside(Builder().allocate().fail()))["memory_failed"]
    assert finding.action is None


def test_another_failure_is_told_again():
    action = found(aside(Builder().allocate().fail(failures=3)))["memory_failed"].action
    assert action == actions.FailAllocation("a1", 3, ABOUT, notify=True)


def test_slices_without_an_owner_are_set_aside():
    action = found(Builder().allocate().put(3, SliceState.SANITIZING).fail())["device_failed"].action
    assert action == actions.QuarantineSlices(
        POOL, (2, 3, 4, 5, 6, 7), Cause.DEVICE_FAILED, f"failure 1 of {ABOUT}", failure=1
    )
    assert action.reason == "device_failed: failure 1 of pool0: its device does not answer"


@pytest.mark.parametrize(("in_use", "notify"), [(True, True), (False, False)])
def test_nobody_is_told_of_what_nobody_claims_or_uses(in_use, notify):
    built = Builder().allocate(unclaimed=1.0, in_use=in_use).fail()
    assert found(built)["memory_failed"].action.notify is notify


def test_a_device_that_is_silent_for_a_moment_has_not_failed():
    codes = found(Builder().allocate().fail(seconds=29))
    assert set(codes) == {"pool_failed"}


def test_a_new_leader_looks_for_itself():
    assert set(found(Builder(pool_state=PoolState.FAILED).allocate())) == {"pool_failed"}


def test_while_the_device_is_away_not_even_an_operator_frees_its_slices():
    codes = found(Builder().put(3, QUARANTINED, **FIRST).fail())
    assert codes["quarantined_waiting"].action is None
    assert "quarantined" not in codes


def test_once_it_is_back_slices_without_an_owner_wait_for_an_operator():
    finding = found(Builder().put(3, QUARANTINED, **FIRST))["quarantined"]
    assert finding.operator
    assert finding.action == actions.AuditSlices(POOL, (3,), "an operator asked for it")


def test_once_it_is_back_a_guest_that_lives_on_keeps_its_slices():
    codes = found(aside(Builder().allocate()))
    assert codes["quarantined_waiting"].action is None
    assert "quarantined" not in codes
    assert "explained" not in codes


def test_once_it_is_back_and_the_guest_is_gone_an_operator_may_free_its_slices():
    built = aside(Builder().allocate(attached=False, unclaimed=1000.0))
    finding = found(built)["quarantined"]
    assert finding.operator
    assert finding.action == actions.AuditSlices(POOL, (0, 1), "an operator asked for it")


# A host


def test_a_fenced_hosts_slices_are_fenced_at_the_device_though_claimed_and_silent():
    built = aside(Builder().allocate().silence().fence(), cause=Cause.HOST_FENCED)
    codes = found(built)
    assert codes["fence_unconfirmed"].action == actions.FenceSlices("h1", POOL, (0, 1))
    assert "quarantined_waiting" not in codes
    assert "host_fenced" not in codes


def test_nobody_elses():
    built = aside(Builder().allocate().allocate(OTHER).fence("h2"), cause=Cause.AGENT_DOWN)
    assert not any(isinstance(finding.action, actions.FenceSlices) for finding in found(built).values())


def test_what_was_aside_before_the_fence_is_fenced_too():
    built = aside(Builder().allocate().silence().fence(), cause=Cause.AGENT_DOWN)
    assert found(built)["fence_unconfirmed"].action == actions.FenceSlices("h1", POOL, (0, 1))


def test_a_silent_host_is_not_fenced_by_time():
    built = aside(Builder().allocate().silence(), cause=Cause.AGENT_DOWN)
    assert not any(isinstance(finding.action, actions.FenceSlices) for finding in found(built).values())


def test_a_fenced_host_without_slices_is_told():
    assert found(Builder().fence())["host_fenced"].action is None


@pytest.mark.parametrize("state", [SliceState.FREE, SliceState.SANITIZING, SliceState.QUARANTINED])
def test_what_a_fenced_host_still_lists_it_has_to_drop(state):
    built = Builder().attach("h1", "old", (Extent(5, 1),), in_use=False).fence()
    built.put(5, state, host="h1" if state is QUARANTINED else None, cause=Cause.HOST_FENCED)
    codes = found(built)
    assert codes["fenced_attached"].action == actions.Offline("h1", "old")
    assert not any(isinstance(finding.action, actions.QuarantineSlices) for finding in codes.values())


def test_a_fenced_host_that_lists_anothers_slices_leaves_the_owner_alone():
    built = Builder().allocate(OTHER).attach("h1", "old", (Extent(4, 1),)).fence()
    codes = found(built)
    assert codes["fenced_attached"].action == actions.Offline("h1", "old")
    assert set(codes) == {"fenced_attached", "host_fenced"}


def test_a_fenced_hosts_slices_of_a_failed_device_wait_for_an_operator():
    built = aside(Builder().allocate().silence().fence())
    finding = found(built)["quarantined"]
    assert finding.operator
    assert finding.action == actions.FenceSlices("h1", POOL, (0, 1))
