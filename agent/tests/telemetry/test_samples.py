"""From a guest's process to the controller: looks, folds, batches, and what is lost."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pondstack.domain.errors import NotLeader, Unavailable
from pondstack.domain.telemetry import Metric
from pondstack.rpc.wire import Sample
from pondstack_agent.controller_link import controller_link
from pondstack_agent.qemu.process import NOT_ALLOWED
from pondstack_agent.telemetry import sender as sending
from pondstack_agent.telemetry.memory import MemoryLook, running_guests
from pondstack_agent.telemetry.outbox import REPEAT_SECONDS, HostOutbox, Outbox
from pondstack_agent.telemetry.sender import TelemetrySender
from pondstack_agent.telemetry.service import Telemetry
from pondstack_rack.wait import wait_until
from tests.fixtures.fake_controller import FakeController

from .conftest import UUID, GuestMaker

PAGES_PER_MIB = 256


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        """Return the present."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outbox(clock: Clock) -> Outbox:
    return Outbox(clock)


def values(samples: list[Sample]) -> dict[tuple[str, int | None], float | None]:
    return {(item.metric, item.node): item.mean for item in samples}


def test_readings_are_folded_with_the_age_of_the_last(outbox: Outbox, clock: Clock) -> None:
    for value in (4.0, 1.0, 7.0):
        outbox.add("vm", Metric.INSTRUCTIONS_PER_CYCLE, value)
        clock.now += 1
    clock.now += 9
    (sample,) = outbox.take()
    assert (sample.readings, sample.minimum, sample.mean, sample.maximum) == (3, 1.0, 4.0, 7.0)
    assert sample.age_seconds == 10.0
    assert outbox.take() == []


def test_a_reason_gives_way_to_a_value(outbox: Outbox) -> None:
    outbox.missing("vm", Metric.HOT_MIB, "not yet")
    outbox.missing("vm", Metric.COLD_MIB, "not yet")
    outbox.add("vm", Metric.HOT_MIB, 0.0)
    hot, cold = outbox.take()
    assert (hot.readings, hot.mean, hot.reason) == (1, 0.0, "")
    assert (cold.readings, cold.mean, cold.reason) == (0, None, "not yet")


def test_a_reason_is_told_when_it_is_new_and_now_and_then(outbox: Outbox, clock: Clock) -> None:
    told = []
    for reason in ("a", "a", "b", None, "b", "b"):
        if reason:
            outbox.missing("vm", Metric.HOT_MIB, reason)
        else:
            outbox.add("vm", Metric.HOT_MIB, 1.0)
        told.append([item.reason for item in outbox.take()])
        clock.now += 60
    assert told == [["a"], [], ["b"], [""], ["b"], []]
    clock.now += REPEAT_SECONDS
    outbox.missing("vm", Metric.HOT_MIB, "b")
    assert [item.reason for item in outbox.take()] == ["b"]


@pytest.mark.usefixtures("root")
def test_a_guest_is_found_and_measured(start_guest: GuestMaker, outbox: Outbox) -> None:
    guest = start_guest(uuid=UUID)
    assert running_guests()[UUID] == guest.pid
    MemoryLook(outbox, lambda: {UUID: guest.pid}).run()
    samples = outbox.take()
    assert {item.consumer_uuid for item in samples} == {UUID}
    found = values(samples)
    assert found["memory_mib", None] == guest.local_mib + guest.pool_mib
    if found["huge_mib", 0]:
        pytest.skip("this kernel gives memory without a name in huge pages, which the figure says")
    for node, mib, pages in ((0, guest.local_mib, guest.local_pages), (1, guest.pool_mib, guest.pool_pages)):
        assert found["memory_mib", node] == mib
        assert found["untouched_mib", node] == pytest.approx(mib - pages / PAGES_PER_MIB, rel=0.02)


@pytest.mark.usefixtures("root")
def test_what_the_data_plane_has_evicted_is_not_untouched(start_guest: GuestMaker, outbox: Outbox) -> None:
    guest = start_guest()
    MemoryLook(outbox, lambda: {UUID: guest.pid}, served=lambda uuid: 80 * 2**20 if uuid == UUID else None).run()
    found = values(outbox.take())
    assert found["untouched_mib", 0] == guest.local_mib - 80
    pool = guest.pool_mib - guest.pool_pages / PAGES_PER_MIB
    assert found["untouched_mib", 1] == pytest.approx(pool, rel=0.02)
    assert found["untouched_mib", None] == pytest.approx(guest.local_mib - 80 + pool, rel=0.02)


@pytest.mark.usefixtures("root")
def test_a_data_plane_that_does_not_say_what_it_has_evicted(start_guest: GuestMaker, outbox: Outbox) -> None:
    guest = start_guest()

    def served(_uuid: str) -> int:
        raise Unavailable("the data plane does not answer")

    MemoryLook(outbox, lambda: {UUID: guest.pid}, served=served).run()
    samples = {(item.metric, item.node): item for item in outbox.take()}
    for node in (0, None):
        assert samples["untouched_mib", node].mean is None
        assert "the data plane does not answer" in samples["untouched_mib", node].reason
    assert samples["untouched_mib", 1].mean is not None


@pytest.mark.usefixtures("root")
def test_what_cannot_be_told_has_a_reason_and_no_value(start_guest: GuestMaker, outbox: Outbox) -> None:
    guest = start_guest(more=("-overcommit", "mem-lock=on"))
    MemoryLook(outbox, lambda: {UUID: guest.pid}).run()
    untouched = [item for item in outbox.take() if item.metric == "untouched_mib"]
    assert len(untouched) == 3
    assert all(item.readings == 0 and item.mean is None and "mem-lock" in item.reason for item in untouched)


_AS_NOBODY = """
import sys
from pondstack_agent.telemetry.access import AccessLook
from pondstack_agent.telemetry.counters import CountersLook
from pondstack_agent.telemetry.memory import MemoryLook
from pondstack_agent.telemetry.outbox import Outbox
from pondstack_agent.telemetry.processors import Processor, event_sets
outbox, running = Outbox(lambda: 0.0), lambda: {"vm": int(sys.argv[1])}
for look in (MemoryLook(outbox, running), AccessLook(outbox, 1.0, 1.0, None, running=running),
             CountersLook(outbox, event_sets(Processor("GenuineIntel"))[:1], running=running)):
    look.run()
for sample in outbox.take():
    print(sample.metric, sample.readings, sample.reason)
"""


@pytest.mark.usefixtures("root")
def test_an_agent_that_may_not_look_says_so(start_guest: GuestMaker) -> None:
    """As another user than root and the guest's own."""
    command = [sys.executable, "-W", "ignore", "-c", _AS_NOBODY, str(start_guest().pid)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, user=65534, env=environment, capture_output=True, text=True, check=False)
    if done.returncode and "PermissionError" in done.stderr.splitlines()[-1]:
        pytest.skip("nobody may not even run this Python")
    assert done.returncode == 0, done.stderr
    metrics = ("untouched_mib", "hot_mib", "cold_mib", "instructions_per_cycle", "cache_misses_per_kilo")
    metrics += ("read_mib_per_cpu_second",)
    assert done.stdout.splitlines() == [f"{metric} 0 {NOT_ALLOWED}" for metric in metrics]


def test_processes_that_are_no_guests_are_left_out(outbox: Outbox) -> None:
    MemoryLook(outbox, lambda: {UUID: os.getpid(), "gone": 2**22 + 1}).run()
    assert outbox.take() == []


def test_a_name_that_is_no_uuid_is_no_instance(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes(b"qemu\0-uuid\0../etc\0")
    assert running_guests(tmp_path) == {}


@pytest.fixture
def controller() -> FakeController:
    return FakeController({})


@pytest.fixture
def sender(controller: FakeController, outbox: Outbox) -> TelemetrySender:
    return TelemetrySender("host1", controller_link(controller, None, 5.0), outbox, HostOutbox(lambda: 0.0))


def test_batches_are_bounded(
    sender: TelemetrySender, controller: FakeController, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "BATCH_SAMPLES", 3)
    for node in range(7):
        outbox.add("vm", Metric.MEMORY_MIB, 1.0, node)
    sender.run()
    assert controller.calls == ["telemetry"] * 3
    assert [item.node for item in controller.samples] == list(range(7))
    sender.run()
    assert len(controller.calls) == 3, "nothing to tell is not told"


def test_a_lost_batch_is_lost_and_said_once(
    sender: TelemetrySender, controller: FakeController, outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    def refuse(**_: object) -> None:
        raise NotLeader("nobody leads")

    controller.before["telemetry"] = [refuse, refuse]
    for value in (1.0, 2.0, 3.0):
        outbox.add("vm", Metric.MEMORY_MIB, value)
        sender.run()
    assert [item.mean for item in controller.samples] == [3.0]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "1 samples are lost: nobody leads" in caplog.text


@pytest.mark.usefixtures("root")
def test_the_service_looks_and_tells_by_itself(start_guest: GuestMaker, controller: FakeController, conf: Any) -> None:
    """All looks at once, over the real /proc, with nothing told when."""
    start_guest(uuid=UUID)
    for name, value in {"memory_seconds": 1, "batch_seconds": 1, "access_seconds": 1, "counters_seconds": 0.2}.items():
        conf.set_override(name, value, group="telemetry")
    conf.set_override("libvirt_uri", "test:///default", group="telemetry")
    telemetry = Telemetry(conf, controller_link(controller, None, 5.0))
    telemetry.start()
    wanted = {
        "memory_mib",
        "untouched_mib",
        "committed_mib",
        "hot_mib",
        "instructions_per_cycle",
        "memory_bound_percent",
    }
    try:
        assert wait_until(lambda: wanted <= {item.metric for item in mine(controller)}, 30.0, 0.05)
    finally:
        telemetry.stop()
    assert all(item.readings or item.reason for item in mine(controller))


def mine(controller: FakeController) -> list[Sample]:
    return [item for item in controller.samples if item.consumer_uuid == UUID]
