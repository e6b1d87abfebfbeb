"""Samples that are made up, for machines without counters or a second memory: each line says so. Pure.

A workload is a handful of drawn traits (how often it misses, how many misses overlap, how much is prefetched); the
counters and the slowdown follow from these by the arithmetic of stalled cycles, with noise. Some suffer more than their
counters tell, as tail latencies do. What a model reaches here says that the pipeline works, and nothing of real guests.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from pondstack.domain.telemetry import Metric, Source
from pondstack.prediction.samples import Sample, Step

KERNELS = ("pointer-chase", "stream", "hash-join", "graph", "sort", "compression", "key-value")
LATENCY_RATIO = 1.82
"""Latency of the pool by that of local memory: Pond's first setting (section 6.1)."""
SPILLS: tuple[float, ...] = (0.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0)
LOCAL_CYCLES = 220.0
HERTZ = 2.6e9
LINE_MIB = 64 / 2**20
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
CPU = "made up"


@dataclass(frozen=True, slots=True)
class Traits:
    """What a workload is like, per 1,000 instructions where it is a number of events."""

    misses: float
    prefetched: float
    overlap: float
    exposed: float
    late: float
    base_cycles: float
    cache_cycles: float
    store_cycles: float
    front_share: float
    lost_share: float
    walks: float
    suffering: float
    skew: float
    idle_share: float


def generate(count: int = 158, seed: int = 1, runs: int = 1, ratio: float = LATENCY_RATIO) -> Iterator[Sample]:
    """Return samples of `count` workloads, the same for a seed."""
    for place in range(count):
        kernel = KERNELS[place % len(KERNELS)]
        traits = _traits(random.Random(f"{seed}/{place}"))
        for run in range(runs):
            noise = random.Random(f"{seed}/{place}/{run}")
            slowdown = _slowdown(traits, ratio)
            yield Sample(
                f"{kernel}/{place}",
                kernel,
                run,
                Source.SYNTHETIC,
                CPU,
                BEGIN.isoformat(),
                {name: value * noise.gauss(1.0, 0.03) for name, value in counters(traits).items()},
                [_step(traits, slowdown, spill, noise) for spill in SPILLS],
            )


def counters_of(seed: str) -> dict[str, float]:
    """Return the counters of one made-up workload, always the same for a seed."""
    return counters(_traits(random.Random(seed)))


def _traits(rng: random.Random) -> Traits:
    return Traits(
        misses=10 ** rng.uniform(-2.0, 1.3),
        prefetched=rng.betavariate(1.5, 1.5),
        overlap=1.0 + 6.0 * rng.betavariate(1.2, 3.0),
        exposed=rng.uniform(0.4, 1.0),
        late=rng.uniform(0.1, 0.8),
        base_cycles=1000.0 / rng.uniform(1.0, 3.5),
        cache_cycles=10 ** rng.uniform(0.5, 2.4),
        store_cycles=10 ** rng.uniform(-1.0, 2.0),
        front_share=rng.uniform(0.02, 0.25),
        lost_share=rng.uniform(0.0, 0.12),
        walks=10 ** rng.uniform(-2.0, 0.5),
        suffering=rng.uniform(1.5, 6.0) if rng.random() < 0.15 else rng.uniform(0.9, 1.1),
        skew=rng.uniform(0.8, 2.5),
        idle_share=rng.uniform(0.0, 0.004),
    )


def _waits(traits: Traits) -> float:
    """Return the cycles in which nothing runs while a load waits for memory."""
    return traits.misses * (1 - traits.prefetched) * LOCAL_CYCLES / traits.overlap * traits.exposed


def _cycles(traits: Traits) -> float:
    return traits.base_cycles + traits.cache_cycles + traits.store_cycles + _waits(traits)


def _slowdown(traits: Traits, ratio: float) -> float:
    """Return the slowdown in percent with all memory in the pool: of demand loads, late prefetches and stores."""
    loads = _waits(traits) * (ratio - 1)
    prefetches = traits.misses * traits.prefetched * traits.late * LOCAL_CYCLES * (ratio - 1) / traits.overlap
    stores = traits.store_cycles * (ratio - 1) * min(1.0, traits.misses / 5)
    return 100.0 * traits.suffering * (loads + prefetches + stores) / _cycles(traits)


def counters(traits: Traits) -> dict[str, float]:
    """Return what the counters of a run in local memory say."""
    cycles, waits = _cycles(traits), _waits(traits)
    slots = 1.0 - traits.front_share - traits.lost_share
    bound = (cycles - traits.base_cycles * 0.7) / cycles
    backend = 100.0 * slots * bound
    demand = traits.misses * (1 - traits.prefetched)
    return {
        str(metric): value
        for metric, value in {
            Metric.INSTRUCTIONS_PER_CYCLE: 1000.0 / cycles,
            Metric.CACHE_MISSES_PER_KILO: traits.misses,
            Metric.FRONTEND_BOUND_PERCENT: 100.0 * traits.front_share,
            Metric.BAD_SPECULATION_PERCENT: 100.0 * traits.lost_share,
            Metric.RETIRING_PERCENT: 100.0 * slots * (1 - bound),
            Metric.BACKEND_BOUND_PERCENT: backend,
            Metric.MEMORY_BOUND_PERCENT: backend * (cycles - traits.base_cycles) / (cycles - traits.base_cycles * 0.7),
            Metric.DRAM_BOUND_PERCENT: 100.0 * waits / cycles,
            Metric.STORE_BOUND_PERCENT: 100.0 * traits.store_cycles / cycles,
            Metric.L2_MISSES_PER_KILO: traits.misses + traits.cache_cycles / 40.0,
            Metric.L3_MISS_LATENCY_CYCLES: LOCAL_CYCLES * (1 + min(1.0, traits.misses * traits.overlap / 150)),
            Metric.L3_MISS_PARALLELISM: traits.overlap,
            Metric.DTLB_WALKS_PER_KILO: traits.walks * (1 + demand / 4),
            Metric.READ_MIB_PER_CPU_SECOND: traits.misses / cycles * HERTZ * LINE_MIB,
        }.items()
    }


def _step(traits: Traits, slowdown: float, spill: float, noise: random.Random) -> Step:
    """Return one point of the sweep. The pool has the least used memory, and some of the kernel's even unspilt."""
    share = traits.idle_share + (1 - traits.idle_share) * (spill / 100) ** traits.skew
    return Step(spill, slowdown * share + noise.gauss(0.0, 0.5), 100.0 * share)
