"""Runs one kernel in local memory and with more and more of its memory in the pool, and makes a sample of it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from pondstack.domain.errors import HostUnusable
from pondstack.domain.telemetry import Source
from pondstack.prediction.samples import Sample, Step
from pondstack_agent.sampler import thread_counters
from pondstack_agent.sampler.arena import Arena
from pondstack_agent.sampler.kernels import KERNELS, Run
from pondstack_agent.telemetry.events import EventSet
from pondstack_agent.telemetry.perf import Event
from pondstack_agent.telemetry.processors import Processor

MIB = 1024 * 1024
SLACK = MIB
"""What an arena has beyond a kernel's size: arrays begin at cache lines, and small kernels have a least size."""
MOST_DOUBLINGS = 24
REPEATS = 3
"""Of which the fastest counts: what disturbs a run makes it slower, never faster."""

MakeArena = Callable[[int, float], Arena]
"""From bytes and spill in percent to an arena."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a sample is taken on, and what can be counted there."""

    cpu: Processor
    sets: list[EventSet]
    share: tuple[Event, ...]
    share_reason: str
    arena: MakeArena


@dataclass(frozen=True, slots=True)
class _Work:
    """A kernel on so many MiB, the bytes that its arrays take, and how many units a run has."""

    kernel: str
    mib: int
    bytes: int
    units: int


class Runner:
    """Samples workloads one after the other, in this thread."""

    def __init__(
        self,
        machine: Machine,
        spills: Sequence[float],
        seconds: float,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """`seconds`: how long a kernel runs at least in local memory. The clock is of this thread: waits for memory are
        in it, and what others do on its CPU is not.
        """
        self._machine, self._spills, self._seconds, self._clock = machine, spills, seconds, clock

    def sample(self, kernel: str, mib: int, number: int) -> Sample:
        """Run a kernel on so many MiB. Raises HostUnusable."""
        work = self._calibrate(kernel, mib)
        base, right, counted = self._local(work)
        missing = dict(counted.missing)
        steps = []
        for spill in self._spills:
            taken, checksum, part, reason = self._spilt(work, spill)
            if checksum != right:
                raise HostUnusable(f"{kernel} of {mib} MiB came to another result in pool memory: it is not used")
            if part is None:
                missing[thread_counters.SHARE] = reason
            steps.append(Step(spill, 100.0 * (taken / base - 1.0), part))
        return Sample(
            f"{kernel}/{mib}MiB",
            kernel,
            number,
            Source.MEASURED,
            str(self._machine.cpu),
            datetime.now(UTC).isoformat(timespec="seconds"),
            counted.figures,
            steps,
            missing,
        )

    def _calibrate(self, kernel: str, mib: int) -> _Work:
        """Return what memory a kernel really needs, so that a spill is of that, and how many units take long enough."""
        arena = self._machine.arena(mib * MIB + SLACK, 0.0)
        run, units = KERNELS[kernel](arena, mib * MIB), 1
        run(1)
        for _ in range(MOST_DOUBLINGS):
            if self._timed(partial(run, units)) >= self._seconds:
                break
            units *= 2
        return _Work(kernel, mib, arena.used, units)

    def _prepared(self, work: _Work, spill: float) -> Run:
        arena = self._machine.arena(work.bytes, spill)
        run = KERNELS[work.kernel](arena, work.mib * MIB)
        run(1)
        arena.check()
        return run

    def _local(self, work: _Work) -> tuple[float, int, thread_counters.Counted]:
        """Return the time and the result of a run in local memory, and what is counted in another one."""
        run, results = self._prepared(work, 0.0), []
        taken = min(self._timed(lambda: results.append(run(work.units))) for _ in range(REPEATS))
        counted = thread_counters.counted(self._machine.sets, lambda: run(work.units))
        return taken, results[0], counted

    def _spilt(self, work: _Work, spill: float) -> tuple[float, int, float | None, str]:
        run, results = self._prepared(work, spill), []
        taken = min(self._timed(lambda: results.append(run(work.units))) for _ in range(REPEATS))
        if not self._machine.share:
            return taken, results[0], None, self._machine.share_reason
        part, reason = thread_counters.share(self._machine.share, lambda: run(work.units))
        return taken, results[0], part, reason

    def _timed(self, work: Callable[[], object]) -> float:
        before = self._clock()
        work()
        return self._clock() - before
