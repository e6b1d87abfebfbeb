"""Counters of vCPU threads. Real ones of software events, which every kernel has; hardware where there is some."""

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pondstack.domain.telemetry import Metric
from pondstack_agent.qemu.process import vcpu_threads
from pondstack_agent.telemetry import counters, perf
from pondstack_agent.telemetry.counters import NO_VCPUS, CountersLook
from pondstack_agent.telemetry.events import EventSet, Ratio
from pondstack_agent.telemetry.outbox import Outbox
from pondstack_agent.telemetry.perf import Event, Group, NotCounted
from pondstack_agent.telemetry.processors import NO_TOP_DOWN, Processor, event_sets, processor, top_down

from .conftest import UUID

SOFTWARE = 1
MINOR_FAULTS, FAULTS = 5, 2
VCPUS = 8
NO_KIND = 0x7FFFFFFF
GENERAL = event_sets(Processor())[0]
SAMPLE_SECONDS = 0.001
"""One reading of a guest's counters (issue, Pond 5: 1 ms)."""

_VCPUS = """
import mmap, sys, threading
area = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
area.madvise(mmap.MADV_NOHUGEPAGE)
turns = [threading.Event() for _ in range(int(sys.argv[1]))]
amount, done = [0], threading.Event()
def vcpu(number):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
        file.write(f"CPU {number}/TCG")
    done.set()
    page = number << 11
    while True:
        turns[number].wait()
        turns[number].clear()
        for page in range(page, page + amount[0]):
            area[page << 12] = 1
        page += 1
        done.set()
for number in range(len(turns)):
    done.clear()
    threading.Thread(target=vcpu, args=(number,), daemon=True).start()
    done.wait()
print("there", flush=True)
for line in sys.stdin:
    number, amount[0] = map(int, line.split())
    done.clear()
    turns[number].set()
    done.wait()
    print("done", flush=True)
"""


class Threads:
    """A process with threads that are named as vCPUs; each touches pages when it is told."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", _VCPUS, str(VCPUS)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer("there")

    def _answer(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{word}\n"

    def touch(self, number: int, pages: int) -> None:
        """Have one vCPU touch fresh pages."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{number} {pages}\n")
        self.process.stdin.flush()
        self._answer("done")

    def end(self) -> None:
        """Kill it; idempotent."""
        self.process.kill()
        self.process.wait(10)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads()
    yield made
    made.end()


def counted(tid: int, *events: Event) -> Group:
    try:
        return Group(tid, events, guest_only=False)
    except NotCounted as error:
        pytest.skip(f"perf_event_open: {error}")


def test_vcpus_are_told_by_their_names(threads: Threads) -> None:
    found = vcpu_threads(threads.process.pid)
    assert len(found) == VCPUS
    assert threads.process.pid not in found


def test_a_threads_own_events_are_counted(threads: Threads) -> None:
    """Page faults of this thread, none of its neighbours."""
    one, two = vcpu_threads(threads.process.pid)[:2]
    groups = [counted(tid, Event(SOFTWARE, FAULTS), Event(SOFTWARE, MINOR_FAULTS)) for tid in (one, two)]
    before = [group.read() for group in groups]
    threads.touch(0, 500)
    first, second = (
        [now - old for now, old in zip(group.read().values, past.values, strict=True)]
        for group, past in zip(groups, before, strict=True)
    )
    for group in groups:
        group.close()
        group.close()
    assert 500 <= first[0] < 520
    assert first[0] == first[1]
    assert second[0] < 20


FAULT_SET = EventSet(
    (Event(SOFTWARE, FAULTS), Event(SOFTWARE, MINOR_FAULTS)), {Metric.BACKEND_BOUND_PERCENT: Ratio(1, 0, 100.0)}
)


def test_a_guest_is_the_sum_of_its_vcpus(threads: Threads) -> None:
    outbox = Outbox(lambda: 0.0)
    look = CountersLook(outbox, [FAULT_SET], running=lambda: {UUID: threads.process.pid})
    look.run()
    if any(sample.reason for sample in outbox.take()):
        pytest.skip("perf_event_open is not allowed here")
    for vcpu in (0, 3):
        threads.touch(vcpu, 100)
    look.run()
    (sample,) = outbox.take()
    assert (sample.consumer_uuid, sample.readings, sample.mean) == (UUID, 1, 100.0)
    look.run()
    assert outbox.take() == [], "a guest that did not run has no ratio"


def test_one_reading_of_a_guest_takes_less_than_a_millisecond(threads: Threads) -> None:
    outbox = Outbox(lambda: 0.0)
    look = CountersLook(outbox, [FAULT_SET, FAULT_SET], running=lambda: {UUID: threads.process.pid})
    look.run()
    took = []
    for _ in range(50):
        threads.touch(0, 1)
        before = time.thread_time()
        look.run()
        took.append(time.thread_time() - before)
    assert sorted(took)[len(took) // 2] < SAMPLE_SECONDS


def test_guests_come_and_go(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "REFRESH_SECONDS", 0.0)
    outbox, running = Outbox(lambda: 0.0), {UUID: threads.process.pid}
    handles = Path("/proc/self/fd")
    before = len(list(handles.iterdir()))
    look = CountersLook(outbox, [FAULT_SET], running=lambda: running)
    look.run()
    look.run()
    if any(sample.reason for sample in outbox.take()):
        pytest.skip("perf_event_open is not allowed here")
    assert len(list(handles.iterdir())) == before + 2 * VCPUS
    threads.end()
    look.run()
    assert len(list(handles.iterdir())) <= before, "the threads' counters are closed"


def test_a_process_without_vcpus_says_so() -> None:
    outbox = Outbox(lambda: 0.0)
    CountersLook(outbox, [GENERAL], running=lambda: {UUID: os.getpid()}).run()
    expected = {**dict.fromkeys(GENERAL.ratios, NO_VCPUS), **GENERAL.missing}
    assert {(item.metric, item.readings, item.reason) for item in outbox.take()} == {
        (str(metric), 0, reason) for metric, reason in expected.items()
    }


def test_hardware_that_is_missing_is_said(threads: Threads, tmp_path: Path) -> None:
    """As on most virtual machines, whichever this one is: of a kind of events that no kernel has."""
    absent = tuple(Event(NO_KIND, event.config) for event in GENERAL.events)
    sets = [dataclasses.replace(GENERAL, events=absent), top_down(tmp_path)]
    outbox = Outbox(lambda: 0.0)
    CountersLook(outbox, sets, running=lambda: {UUID: threads.process.pid}).run()
    first = {item.metric: item for item in outbox.take()}
    assert len(first) == 8
    assert all(item.readings == 0 and item.mean is None for item in first.values())
    assert "no such counters" in first["instructions_per_cycle"].reason
    assert first["memory_bound_percent"].reason == NO_TOP_DOWN


if perf.DEVICE.exists():  # on other machines there is nothing to count

    def test_hardware_is_counted(threads: Threads) -> None:
        outbox = Outbox(lambda: 0.0)
        look = CountersLook(outbox, event_sets(processor()), running=lambda: {UUID: threads.process.pid})
        look.run()
        outbox.take()
        threads.touch(0, 2000)
        look.run()
        assert {item.metric: item for item in outbox.take()}["instructions_per_cycle"].readings == 1


def test_top_down_events_are_the_pmus_own(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "type").write_text("4\n")
    for name, text in (("slots", "event=0x00,umask=0x4"), ("topdown-be-bound", "event=0x00,umask=0x83")):
        (tmp_path / "events" / name).write_text(f"{text}\n")
    found = top_down(tmp_path)
    assert found.events == (Event(4, 0x400), Event(4, 0x8300))
    assert found.ratios == {Metric.BACKEND_BOUND_PERCENT: Ratio(1, 0, 100.0)}
    assert found.missing[Metric.MEMORY_BOUND_PERCENT] == NO_TOP_DOWN
    (tmp_path / "events" / "topdown-mem-bound").write_text("event=0x00,umask=0x87\n")
    again = top_down(tmp_path)
    assert again.ratios[Metric.MEMORY_BOUND_PERCENT] == Ratio(2, 0, 100.0)
    assert Metric.MEMORY_BOUND_PERCENT not in again.missing
