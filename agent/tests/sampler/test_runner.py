"""A sweep over spills with a machine that is made up: slow where memory is in the pool, by a clock of its own."""

import pytest

from pondstack.domain.errors import HostUnusable
from pondstack_agent.sampler import kernels
from pondstack_agent.sampler.arena import Arena
from pondstack_agent.sampler.runner import Machine, Runner
from pondstack_agent.telemetry.events import EventSet
from pondstack_agent.telemetry.processors import NOT_KNOWN, Processor

from .test_kernels import Nodes

SPILLS = (0.0, 50.0, 100.0)


class Clock:
    """Time that passes only where a kernel works: a unit takes 10 ms, and twice that in the pool."""

    def __init__(self) -> None:
        self.now, self.spill = 0.0, 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, units: int) -> None:
        """Let the time pass."""
        self.now += units * 0.01 * (1 + self.spill / 100)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def machine(clock: Clock) -> Machine:
    def arena(size: int, spill: float) -> Arena:
        clock.spill = spill
        return Arena(size, spill, 0, 1, Nodes())

    missing = EventSet((), {}, missing={"l2_misses_per_kilo": NOT_KNOWN})  # type: ignore[dict-item]
    return Machine(Processor("Made", 1, 2), [missing], (), "no events", arena)


def kernel(clock: Clock, results: dict[float, int]) -> kernels.Kernel:
    def prepare(arena: Arena, _size: int) -> kernels.Run:
        arena.array(16, "uint8")[:] = 1

        def run(units: int) -> int:
            clock.work(units)
            return results.get(clock.spill, 7)

        return run

    return prepare


def test_slowdowns_follow_the_spill(machine: Machine, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernels.KERNELS, "slow", kernel(clock, {}))  # type: ignore[arg-type]
    sample = Runner(machine, SPILLS, 0.3, clock).sample("slow", 4, 2)
    assert (sample.workload, sample.kernel, sample.run, sample.source) == ("slow/4MiB", "slow", 2, "measured")
    assert [step.slowdown_percent for step in sample.sweep] == pytest.approx([0.0, 50.0, 100.0])
    assert sample.slowdown_percent == pytest.approx(100.0)
    assert sample.counters == {}
    assert sample.missing == {"l2_misses_per_kilo": NOT_KNOWN, "pool_access_percent": "no events"}
    assert all(step.pool_access_percent is None for step in sample.sweep)
    assert sample.cpu == "Made-1-2"


def test_another_result_in_the_pool_is_no_sample(
    machine: Machine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(kernels.KERNELS, "wrong", kernel(clock, {50.0: 8}))  # type: ignore[arg-type]
    with pytest.raises(HostUnusable, match="another result"):
        Runner(machine, SPILLS, 0.3, clock).sample("wrong", 4, 0)
