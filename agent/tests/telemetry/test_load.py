"""Load of the host and of its guests by files like /proc's, and what pagers tell."""

from pathlib import Path
from uuid import uuid4

import pytest

from pondstack.domain.telemetry import Metric, Source
from pondstack_agent.telemetry.load import TICKS, GuestLoadLook, HostLoadLook, PagerLook
from pondstack_agent.telemetry.outbox import HostOutbox, Outbox

VM = str(uuid4())


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def write_host(proc: Path, user: int, idle: int, iowait: int) -> None:
    (proc / "stat").write_text(f"cpu  {user} 0 0 {idle} {iowait} 0 0 0 999 0\ncpu0 1 0 0 1\ncpu1 1 0 0 1\nintr 5\n")
    (proc / "meminfo").write_text(
        "MemTotal:    2048000 kB\nMemFree:   1 kB\nMemAvailable:  1024000 kB\nHugePages_Total: 0\n"
    )


def write_guest(proc: Path, pid: int, user: int, system: int) -> None:
    (proc / str(pid)).mkdir(exist_ok=True)
    fields = ["S", *["0"] * 10, str(user), str(system), "7", "7"]
    (proc / str(pid) / "stat").write_text(f"{pid} (qemu) (x) {' '.join(fields)}\n")


def test_the_host_s_load_is_that_since_the_look_before(tmp_path: Path) -> None:
    clock, write = Clock(), write_host
    outbox = HostOutbox(clock)
    look = HostLoadLook(outbox, tmp_path)
    write(tmp_path, user=1000, idle=1000, iowait=0)
    look.run()
    assert {item.metric: item.value for item in outbox.take()} == {"cpus": 2, "memory_mib": 2000, "free_mib": 1000}
    write(tmp_path, user=1030, idle=1050, iowait=20)
    look.run()
    clock.now = 7.0
    found = {item.metric: item for item in outbox.take()}
    assert found["load_percent"].value == 30.0
    assert (found["load_percent"].age_seconds, found["load_percent"].source) == (7.0, Source.MEASURED)
    assert outbox.take() == []


def test_a_load_that_is_played_says_so_and_the_rest_is_measured(tmp_path: Path) -> None:
    outbox = HostOutbox(Clock())
    look = HostLoadLook(outbox, tmp_path, lambda: 70.0)
    write_host(tmp_path, user=1000, idle=1000, iowait=0)
    look.run()
    found = {item.metric: (item.value, item.source) for item in outbox.take()}
    assert found["load_percent"] == (70.0, Source.SYNTHETIC)
    assert found["free_mib"] == (1000.0, Source.MEASURED)


def test_a_guest_s_cpus_are_those_since_the_look_before(tmp_path: Path) -> None:
    clock = Clock()
    outbox = Outbox(clock)
    look = GuestLoadLook(outbox, lambda: {VM: 42, str(uuid4()): 43}, clock, tmp_path)
    write_guest(tmp_path, 42, user=0, system=0)
    look.run()
    assert outbox.take() == []
    clock.now = 10.0
    write_guest(tmp_path, 42, user=12 * TICKS, system=3 * TICKS)
    look.run()
    [sample] = outbox.take()
    assert (sample.consumer_uuid, sample.metric, sample.node) == (VM, "used_cpus", None)
    assert sample.mean == pytest.approx(1.5)


def test_a_guest_that_is_started_anew_is_another_process(tmp_path: Path) -> None:
    clock, running = Clock(), {VM: 42}
    outbox = Outbox(clock)
    look = GuestLoadLook(outbox, lambda: running, clock, tmp_path)
    write_guest(tmp_path, 42, user=500 * TICKS, system=0)
    look.run()
    clock.now, running[VM] = 10.0, 43
    write_guest(tmp_path, 43, user=TICKS, system=0)
    look.run()
    assert outbox.take() == []


def test_what_a_pager_keeps_where() -> None:
    outbox = Outbox(Clock())
    views = [
        {"consumer_uuid": VM, "extension": {"resident_mib": 512, "evicted_mib": 0}},
        {"consumer_uuid": str(uuid4()), "extension": {"resident_mib": None, "evicted_mib": None}},
        {"consumer_uuid": str(uuid4()), "disk": {}},
    ]
    PagerLook(outbox, lambda: views).run()
    found = {(item.consumer_uuid, item.metric): item.mean for item in outbox.take()}
    assert found == {(VM, Metric.RESIDENT_MIB): 512.0, (VM, Metric.EVICTED_MIB): 0.0}
