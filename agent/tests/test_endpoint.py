"""Attach and detach as the virt driver and the controller call them."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pondstack.domain.errors import (
    Conflict,
    DeviceFailed,
    HostUnusable,
    InUse,
    OperationMismatch,
    PermissionHeld,
    PoolShortage,
    SlicesReturning,
    StaleEpoch,
    Unavailable,
)
from pondstack_agent.qemu.attachment_lock import hold
from tests.fixtures.rpc_call import call


def fail(error):
    def action(**_arguments):
        raise error

    return action


LOST = Unavailable("no answer")


def test_attach_assigns_onlines_and_acknowledges(rig) -> None:
    answer = rig.attach("op1", mib=2)
    assert rig.controller.held == {answer.allocation_uuid: "online"}
    assert rig.attached() == {answer.allocation_uuid}
    assert (answer.pool_mib, answer.pool_name, answer.epoch) == (2, "pool0", 1)
    assert [backing.size_mib for backing in answer.backings] == [2]


def test_attach_passes_the_shape_on(rig) -> None:
    answer = rig.attach("op1", mib=3, shape=[2, 1])
    assert [extent.count for extent in answer.extents] == [2, 1]


def test_a_repeated_attach_gets_the_same_answer(rig) -> None:
    assert rig.attach("op1") == rig.attach("op1")
    assert rig.controller.calls.count("assign") == 1


def test_an_attach_goes_on_while_slices_are_on_their_way_back(rig) -> None:
    rig.controller.before["assign"] = [fail(SlicesReturning("2 on their way back"))] * 2
    for _ in range(2):
        with pytest.raises(SlicesReturning, match="2 on their way back"):
            rig.attach("op1")
    answer = rig.attach("op1")
    assert rig.attached() == {answer.allocation_uuid}


def test_an_attach_that_waits_for_slices_is_undone_without_getting_any(rig) -> None:
    rig.controller.before["assign"] = [fail(SlicesReturning("2 on their way back"))] * 2
    with pytest.raises(SlicesReturning):
        rig.attach("op1", consumer="vm")
    rig.detach("op2", consumer="vm")
    rig.beat()
    assert rig.controller.before["assign"] == []
    rig.beat()
    assert rig.controller.calls.count("assign") == 0


def test_concurrent_repetitions_are_one_attach(rig) -> None:
    entered, go_on = threading.Event(), threading.Event()
    rig.controller.before["assign"] = [lambda **_: (entered.set(), go_on.wait(30))]
    with ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(rig.attach, "op1") for _ in range(4)]
        assert entered.wait(30)
        go_on.set()
        assert len({answer.result(30).allocation_uuid for answer in answers}) == 1
    assert rig.controller.calls.count("assign") == 1


def test_consumers_do_not_wait_for_each_other(rig) -> None:
    entered, go_on = threading.Event(), threading.Event()
    rig.controller.before["assign"] = [lambda **_: (entered.set(), go_on.wait(30))]
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(rig.attach, "op1", "vm1")
        assert entered.wait(30)
        assert rig.attach("op2", "vm2").consumer_uuid == "vm2"
        go_on.set()
        assert slow.result(30).consumer_uuid == "vm1"


def test_an_operation_id_serves_one_request(rig) -> None:
    rig.attach("op1", mib=2)
    with pytest.raises(OperationMismatch):
        rig.attach("op1", mib=1)
    with pytest.raises(OperationMismatch):
        rig.attach("op1", "vm2", mib=2)
    with pytest.raises(OperationMismatch):
        rig.detach("op1")


def test_a_refused_assign_is_refused_again_with_the_same_text(rig) -> None:
    for _ in range(2):
        with pytest.raises(PoolShortage, match="9 slices asked for, 8 free"):
            rig.attach("op1", mib=9)
    assert rig.attach("op2", mib=8)


def test_a_pool_out_of_reach_is_not_asked_for(rig) -> None:
    with pytest.raises(HostUnusable, match="does not reach"):
        call(
            rig.agent.endpoint.attach, operation_id="op1", consumer_uuid="vm1", pool_uuid="far", pool_mib=1, guest_mib=2
        )
    assert rig.controller.calls == []


@pytest.mark.parametrize("lose", ["before", "after"])
def test_a_lost_assign_goes_on_by_the_same_operation(rig, lose: str) -> None:
    getattr(rig.controller, lose)["assign"] = [fail(LOST)]
    with pytest.raises(Unavailable):
        rig.attach("op1")
    answer = rig.attach("op1")
    assert rig.controller.held == {answer.allocation_uuid: "online"}


@pytest.mark.parametrize("lose", ["before", "after"])
def test_a_lost_acknowledge_goes_on_by_the_same_operation(rig, lose: str) -> None:
    getattr(rig.controller, lose)["acknowledge"] = [fail(LOST)]
    with pytest.raises(Unavailable):
        rig.attach("op1")
    answer = rig.attach("op1")
    assert rig.controller.held == {answer.allocation_uuid: "online"}
    assert rig.attached() == {answer.allocation_uuid}


@pytest.mark.parametrize("method", ["assign", "acknowledge"])
@pytest.mark.parametrize("lose", ["before", "after"])
def test_detach_after_a_lost_answer_leaves_nothing(rig, method: str, lose: str) -> None:
    getattr(rig.controller, lose)[method] = [fail(LOST)]
    with pytest.raises(Unavailable):
        rig.attach("op1")
    rig.detach("op2")
    rig.later.run()
    assert rig.controller.held == {}
    assert rig.attached() == set()
    with pytest.raises(Conflict):
        rig.attach("op1")
    assert rig.controller.held == {}


def test_a_cancelled_attach_is_undone_once_the_controller_answers(rig) -> None:
    rig.controller.after["assign"] = [fail(LOST)]
    with pytest.raises(Unavailable):
        rig.attach("op1")
    rig.controller.before["assign"] = [fail(LOST)]
    rig.detach("op2")
    rig.later.run()
    assert len(rig.controller.held) == 1
    with pytest.raises(Conflict, match="cancelled"):
        rig.attach("op1")
    rig.beat()
    assert rig.controller.held == {}


@pytest.mark.parametrize("lose", ["assign", "acknowledge"])
def test_an_attach_that_nobody_repeats_is_undone(rig, lose: str) -> None:
    rig.controller.after[lose] = [fail(LOST)]
    with pytest.raises(Unavailable):
        rig.attach("op1")
    rig.beat()
    assert len(rig.controller.held) == 1
    rig.now += 61
    rig.beat()
    assert rig.controller.held == {}
    assert rig.attached() == set()


def test_a_failing_driver_gives_the_slices_back(rig, device) -> None:
    rig.controller.after["assign"] = [
        lambda **_: (device.path / "memory").write_bytes(b"somebody's" + bytes(8 * 2**20))
    ]
    with pytest.raises(DeviceFailed, match="slice 0"):
        rig.attach("op1")
    rig.beat()
    assert rig.controller.held == {}
    assert rig.attached() == set()
    with pytest.raises(DeviceFailed, match="slice 0"):
        rig.attach("op1")


def test_a_grant_without_permission_is_given_back(rig, device) -> None:
    def revoke(**_):
        [allocation] = rig.controller.held
        device.revoke(range(8), tag=allocation, epoch=1)

    rig.controller.after["assign"] = [revoke]
    with pytest.raises(PermissionHeld):
        rig.attach("op1")
    rig.later.run()
    assert rig.controller.held == {}


def test_a_refused_acknowledge_is_undone(rig) -> None:
    rig.controller.before["acknowledge"] = [fail(Conflict("gone"))]
    with pytest.raises(Conflict, match="gone"):
        rig.attach("op1")
    assert rig.attached() == set()
    rig.later.run()
    assert rig.controller.held == {}


def test_detach_tells_the_controller_in_the_background(rig) -> None:
    allocation = rig.attach("op1").allocation_uuid
    assert rig.detach("op2") is True
    assert rig.attached() == set()
    assert rig.agent.reporter.report().released == (allocation,)
    assert rig.controller.held == {allocation: "online"}
    rig.later.run()
    assert rig.controller.held == {}
    assert rig.agent.reporter.report().released == ()


def test_detach_of_nothing(rig) -> None:
    assert rig.detach("op1") is False
    assert rig.detach("op1") is False


def test_a_repeated_detach_gets_the_same_answer_and_spares_a_newer_attach(rig) -> None:
    rig.attach("op1")
    assert rig.detach("op2") is True
    rig.later.run()
    newer = rig.attach("op3")
    assert rig.detach("op2") is True
    assert rig.attached() == {newer.allocation_uuid}


def test_a_late_duplicate_of_a_detached_attach_changes_nothing(rig) -> None:
    rig.attach("op1")
    rig.detach("op2")
    rig.later.run()
    with pytest.raises(Conflict, match="detached meanwhile"):
        rig.attach("op1")
    rig.later.run()
    assert rig.attached() == set()
    assert rig.controller.held == {}


def test_detach_in_use_changes_nothing(rig, tmp_path) -> None:
    import os

    allocation = rig.attach("op1").allocation_uuid
    handle = hold(tmp_path / "state" / "attachments" / f"{allocation}.json")
    try:
        with pytest.raises(InUse):
            rig.detach("op2")
        with pytest.raises(InUse):
            call(rig.agent.endpoint.offline, epoch=1, operation_id="op3", allocation_uuid=allocation)
        assert rig.agent.reporter.report().released == ()
        assert rig.attached() == {allocation}
        assert rig.attach("op1").allocation_uuid == allocation
    finally:
        os.close(handle)
    assert rig.detach("op2") is True


def test_get_attachment(rig) -> None:
    assert rig.attachment("vm1") is None
    answer = rig.attach("op1")
    assert rig.attachment("vm1") == answer
    assert rig.attachment("vm2") is None
    rig.detach("op2")
    assert rig.attachment("vm1") is None


def test_get_attachment_hides_what_the_controller_does_not_know(rig) -> None:
    rig.controller.before["acknowledge"] = [fail(LOST)]
    with pytest.raises(Unavailable):
        rig.attach("op1")
    assert rig.attachment("vm1") is None


def test_a_grant_of_a_former_leader_is_renewed_by_the_present_one(rig) -> None:
    """The fail-over came between the grant and its use: the attach goes on with the same slices."""

    def away(**_):
        raise Unavailable("the leader has just died")

    rig.controller.before["acknowledge"].append(away)
    with pytest.raises(Unavailable):
        rig.attach("op1")
    call(rig.agent.endpoint.report, epoch=5)
    rig.controller.lead_again(5)
    answer = rig.attach("op1")
    assert answer.epoch == 5
    assert rig.controller.calls.count("assign") == 2
    assert rig.attached() == set(rig.controller.held) == {answer.allocation_uuid}


def test_an_old_epoch_is_refused_over_restarts(rig) -> None:
    allocation = rig.attach("op1").allocation_uuid
    assert call(rig.agent.endpoint.report, epoch=7)["epoch"] == 7
    rig.restart()
    with pytest.raises(StaleEpoch, match="epoch 7"):
        call(rig.agent.endpoint.offline, epoch=6, operation_id="op2", allocation_uuid=allocation)
    with pytest.raises(StaleEpoch):
        call(rig.agent.endpoint.report, epoch=6)
    assert rig.attached() == {allocation}


def test_a_grant_of_an_old_controller_is_given_back(rig) -> None:
    call(rig.agent.endpoint.report, epoch=7)
    with pytest.raises(StaleEpoch):
        rig.attach("op1")
    assert rig.attached() == set()
    rig.later.run()
    assert rig.controller.held == {}


def test_finished_operations_are_forgotten_in_time_and_live_ones_kept(rig, tmp_path) -> None:
    rig.attach("op1", "vm1")
    rig.attach("op2", "vm2")
    rig.detach("op3", "vm2")
    rig.beat()
    rig.now += 3601
    rig.beat()
    names = {path.stem for path in (tmp_path / "state" / "operations").iterdir()}
    assert names == {"op1"}
    assert list((tmp_path / "state" / "releases").iterdir()) == []
