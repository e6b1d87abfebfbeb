"""What a call costs by the clock and by its thread's CPU time, and by which of the two a target can be judged.

A busy machine makes calls wait that cost no more than before. A call that waits for something costs no CPU time. So a
target holds if both keep to it; while others use the machine only the CPU time can be judged, and that is said.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.figures import percentile


@dataclass(frozen=True, slots=True)
class Spent:
    """Milliseconds that one call took: by the clock, and of its own thread's CPU time."""

    clock_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Load:
    """Tasks that wanted a CPU on average of the last minute, and how many CPUs there are."""

    tasks: float
    cpus: int

    @classmethod
    def now(cls) -> "Load":
        """Return the machine's."""
        return cls(os.getloadavg()[0], os.cpu_count() or 1)

    @property
    def busy(self) -> bool:
        """Return whether a call may have waited for a CPU."""
        return self.tasks > self.cpus

    def __str__(self) -> str:
        return f"load {self.tasks:.1f} on {self.cpus} CPUs"


def spent(call: Callable[[], object]) -> Spent:
    """Return what a call takes."""
    clock, cpu = time.perf_counter(), time.thread_time()
    call()
    return Spent((time.perf_counter() - clock) * 1000, (time.thread_time() - cpu) * 1000)


def judge(name: str, calls: Sequence[Spent], target_ms: float, load: Load) -> tuple[str, bool]:
    """Return the p99 by clock and CPU time beside their target in words, and whether what can be judged holds."""
    clock, cpu = (percentile([getattr(item, by) for item in calls], 99) for by in ("clock_ms", "cpu_ms"))
    held = cpu < target_ms and (load.busy or clock < target_ms)
    told = f"not judged, {load}: others had the CPUs" if load.busy else f"target < {target_ms:.0f} ms"
    text = f"p99 of {name}: {cpu:.3f} ms of CPU time, target < {target_ms:.0f} ms; {clock:.3f} ms by the clock, {told}"
    return text, held
