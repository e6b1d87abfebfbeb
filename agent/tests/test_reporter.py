"""Reports, heartbeats and what the answers change."""

import logging
import os

import pytest

from pondstack.domain.errors import StaleEpoch, Unavailable
from pondstack_agent import build
from pondstack_agent.qemu.attachment_lock import hold
from tests.fixtures.rpc_call import call


def test_a_report_tells_what_is_there(rig, tmp_path) -> None:
    answer = rig.attach("op1")
    handle = hold(tmp_path / "state" / "attachments" / f"{answer.allocation_uuid}.json")
    report = rig.agent.reporter.report()
    os.close(handle)
    assert (report.host, report.pools, report.epoch) == ("host1", (rig.pool,), 1)
    assert report.version
    [item] = report.attached
    assert (item.allocation_uuid, item.consumer_uuid, item.extents) == (answer.allocation_uuid, "vm1", answer.extents)
    assert item.in_use is True


def test_the_sequence_grows_over_restarts(rig) -> None:
    numbers = []
    for _ in range(3):
        numbers += [rig.agent.reporter.report().sequence for _ in range(2)]
        rig.restart()
    assert numbers == sorted(set(numbers))


def test_what_is_released_is_not_attached(rig, monkeypatch) -> None:
    """A release between the two looks of one report."""
    rig.attach("op1")
    pools = rig.agent.reporter._pools
    attached = pools.attached

    def look_then_release():
        found = attached()
        monkeypatch.setattr(pools, "attached", attached)
        rig.detach("op2")
        return found

    monkeypatch.setattr(pools, "attached", look_then_release)
    report = rig.agent.reporter.report()
    assert report.attached == ()
    assert len(report.released) == 1


def keep(*_, **__):
    raise Unavailable("no answer")


def test_what_ended_in_the_boot_it_began_in_is_written_back(rig) -> None:
    allocation = rig.attach("op1").allocation_uuid
    rig.controller.before["release"] = [keep]
    rig.detach("op2")
    rig.restart()
    report = rig.agent.reporter.report()
    assert (report.released, report.written_back) == ((allocation,), (allocation,))


def test_what_cpu_caches_had_at_a_restart_is_not(rig, monkeypatch, tmp_path) -> None:
    """Whether the release had come as far as that nobody knows."""
    allocation = rig.attach("op1").allocation_uuid

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(rig.agent.reporter._pools, "detach", killed)
    with pytest.raises(KeyboardInterrupt):
        rig.detach("op2")
    boot = tmp_path / "boot_id"
    boot.write_text("another")
    monkeypatch.setattr(build, "BOOT_ID", boot)
    rig.controller.before["release"] = [keep]
    rig.restart()
    report = rig.agent.reporter.report()
    assert (report.released, report.written_back) == ((allocation,), ())


def test_nor_what_they_had_at_a_restart_in_a_hand_over(rig, monkeypatch) -> None:
    """It went offline, and was written back, after the guest had begun to move."""
    allocation = rig.attach("op1").allocation_uuid
    monkeypatch.setattr(rig.agent.reporter._pools, "lost_caches", lambda uuid: uuid == allocation)
    rig.controller.before["release"] = [keep]
    rig.detach("op2")
    report = rig.agent.reporter.report()
    assert (report.released, report.written_back) == ((allocation,), ())


def test_releases_are_repeated_until_the_controller_forgets(rig) -> None:
    allocation = rig.attach("op1").allocation_uuid
    rig.controller.before["release"] = [keep]
    rig.detach("op2")
    rig.controller.after["heartbeat"] = [keep]
    assert rig.beat() is False
    assert rig.beat() is True
    assert [report.released for report in rig.controller.reports] == [(allocation,), (allocation,)]
    assert rig.beat() is True
    assert rig.controller.reports[-1].released == ()


def test_pools_and_epoch_are_learnt(rig) -> None:
    rig.controller.lead_again(4)
    assert rig.beat() is True
    assert rig.agent.reporter.known_pools[rig.pool]["slices_total"] == 8
    with pytest.raises(StaleEpoch):
        call(rig.agent.endpoint.report, epoch=3)


def test_an_old_controllers_answer_is_not_trusted(rig) -> None:
    allocation = rig.attach("op1").allocation_uuid
    rig.detach("op2")
    rig.later.waiting.clear()
    call(rig.agent.endpoint.report, epoch=9)
    assert rig.agent.reporter.heartbeat() is False
    assert rig.agent.reporter.report().released == (allocation,)


def test_a_silent_controller_is_logged_once(rig, caplog) -> None:
    def silent(*_, **__):
        raise Unavailable("no answer")

    with caplog.at_level(logging.INFO):
        rig.controller.before["heartbeat"] = [silent, silent, silent]
        assert [rig.agent.reporter.heartbeat() for _ in range(4)] == [False, False, False, True]
        rig.agent.reporter.heartbeat()
    lines = [record.getMessage() for record in caplog.records if "Heartbeat" in record.getMessage()]
    assert [line.split(",")[0] for line in lines] == [
        "Heartbeat of host host1 failed",
        "Heartbeat of host host1 works again",
    ]


def test_quiet_at_idle(rig, caplog) -> None:
    rig.beat()
    caplog.clear()
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            rig.beat()
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []


def test_a_pool_that_the_controller_does_not_have_is_named(rig, caplog) -> None:
    rig.controller.devices.clear()
    rig.beat()
    assert f"reaches pool {rig.pool}" in caplog.text


def test_a_device_that_went_away_is_no_pool_of_the_host(rig, device, caplog) -> None:
    allocation = rig.attach("op1").allocation_uuid
    device.path.rename(device.path.with_name("gone"))
    for _ in range(2):
        report = rig.agent.reporter.report()
    assert report.pools == ()
    # The guest's slices are not called free because they cannot be looked at.
    assert [(item.allocation_uuid, item.in_use) for item in report.attached] == [(allocation, True)]
    assert caplog.text.count("does not reach a pool device") == 1


def test_a_forged_epoch_locks_no_host_out(rig) -> None:
    rig.beat()
    with pytest.raises(Unavailable):
        call(rig.agent.endpoint.report, epoch=10**18)
    rig.restart()
    assert call(rig.agent.endpoint.report, epoch=2)["epoch"] == 2


def test_a_high_epoch_of_the_controllers_own_is_believed_after_a_heartbeat(rig) -> None:
    rig.controller.epoch = 5_000_000
    with pytest.raises(Unavailable):
        call(rig.agent.endpoint.report, epoch=5_000_000)
    assert rig.beat() is True
    assert call(rig.agent.endpoint.report, epoch=5_000_000)["epoch"] == 5_000_000
