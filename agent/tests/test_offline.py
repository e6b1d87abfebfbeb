"""Offline, as the controller orders it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pondstack.domain.errors import Conflict, InUse, StaleEpoch
from pondstack_agent.drivers.emulated import EmulatedHostPool
from pondstack_rack.wait import wait_until
from tests.fixtures.rpc_call import call


def test_a_late_duplicate_after_an_offline_changes_nothing(rig) -> None:
    allocation = rig.attach("op1").allocation_uuid
    assert call(rig.agent.endpoint.offline, epoch=1, operation_id="op2", allocation_uuid=allocation)
    with pytest.raises(Conflict, match="given back"):
        rig.attach("op1")
    assert rig.attached() == set()


def test_offline_by_the_controller(rig) -> None:
    allocation = rig.attach("op1").allocation_uuid
    for _ in range(2):
        assert call(rig.agent.endpoint.offline, epoch=1, operation_id="op2", allocation_uuid=allocation) is True
    assert rig.attached() == set()
    assert rig.later.waiting == []
    assert rig.agent.reporter.report().released == (allocation,), "told until a leader has settled it"


def test_what_goes_offline_is_no_attachment_of_a_guest(rig, monkeypatch) -> None:
    """It takes long: a guest that is started meanwhile finds what else its consumer has, or nothing."""
    answer = rig.attach("op1")
    pools = rig.agent.reporter._pools
    monkeypatch.setattr(type(pools), "slow_detach", True)
    monkeypatch.setattr(pools, "begin_detach", lambda _uuid: True)
    arguments = {"epoch": 1, "operation_id": "o", "allocation_uuid": answer.allocation_uuid}
    assert call(rig.agent.endpoint.offline, **arguments) is False
    assert rig.attached() == {answer.allocation_uuid}
    assert rig.attachment() is None


def test_an_offline_that_rests_on_an_old_report_changes_nothing(rig) -> None:
    """It was under way while the memory came online: the controller has to look again."""
    before = rig.agent.reporter.report().sequence
    allocation = rig.attach("op1").allocation_uuid
    rig.restart()

    def offline(report_sequence: int) -> bool:
        return call(
            rig.agent.endpoint.offline,
            epoch=1,
            operation_id="op2",
            allocation_uuid=allocation,
            report_sequence=report_sequence,
        )

    with pytest.raises(InUse, match=f"came online after report {before} of this host"):
        offline(before)
    assert rig.attach("op1").allocation_uuid == allocation
    report = rig.agent.reporter.report()
    assert [item.allocation_uuid for item in report.attached] == [allocation]
    assert offline(report.sequence) is True
    assert rig.attached() == set()


def test_an_offline_waits_for_memory_that_is_coming_online(rig, monkeypatch) -> None:
    """Else the host would say that it holds none of it, and hold it a moment later."""
    before = rig.agent.reporter.report().sequence
    entered, go_on, plain = threading.Event(), threading.Event(), EmulatedHostPool.attach

    def attach(*arguments):
        entered.set()
        assert go_on.wait(30)
        return plain(*arguments)

    monkeypatch.setattr(EmulatedHostPool, "attach", attach)
    with ThreadPoolExecutor(2) as threads:
        coming = threads.submit(rig.attach, "op1")
        assert entered.wait(30)
        [allocation] = rig.controller.held
        going = threads.submit(
            call,
            rig.agent.endpoint.offline,
            epoch=1,
            operation_id="op2",
            allocation_uuid=allocation,
            report_sequence=before,
        )
        waiting = rig.agent.endpoint._allocations._locks
        assert wait_until(lambda: going.done() or waiting[allocation][1] == 2, 30)
        go_on.set()
        assert coming.result(30).allocation_uuid == allocation
        with pytest.raises(InUse):
            going.result(30)
    assert rig.attached() == {allocation}


def test_a_grant_that_was_offlined_on_its_way_is_refused(rig) -> None:
    def overtake(**_):
        [allocation] = rig.controller.held
        assert call(rig.agent.endpoint.offline, epoch=1, operation_id="op2", allocation_uuid=allocation)

    rig.controller.after["assign"] = [overtake]
    with pytest.raises(Conflict, match="given back"):
        rig.attach("op1")
    assert rig.attached() == set()


def test_an_order_that_waited_while_another_took_over_is_refused(rig) -> None:
    allocation = rig.attach("op1").allocation_uuid
    orders = {"operation_id": "op2", "allocation_uuid": allocation}
    endpoint = rig.agent.endpoint
    with ThreadPoolExecutor(1) as threads:
        with endpoint._consumers.holding("vm1"):
            order = threads.submit(call, endpoint.offline, epoch=2, **orders)
            assert wait_until(lambda: endpoint._epoch.seen == 2, 30)
            endpoint._epoch.confirm(3)
        with pytest.raises(StaleEpoch):
            order.result(30)
    assert rig.attached() == {allocation}
