"""Which events are counted on which processor; of each feature of a model there is an event or a reason, never both."""

from pathlib import Path

import pytest

from pondstack.domain.telemetry import Metric
from pondstack.prediction.counters import COUNTERS
from pondstack_agent.telemetry.events import RUNNING, EventSet, Ratio, figures
from pondstack_agent.telemetry.perf import RAW, Counts, Event
from pondstack_agent.telemetry.processors import (
    AMD,
    INTEL,
    NOT_COUNTED,
    NOT_KNOWN,
    Processor,
    event_sets,
    is_known,
    processor,
    raw,
)

SAPPHIRE, SKYLAKE = Processor(INTEL, 6, 143), Processor(INTEL, 6, 85)
ZEN_3, ZEN_4, ZEN_5 = Processor(AMD, 25, 1), Processor(AMD, 25, 17), Processor(AMD, 26, 2)
TOP_DOWN = (
    "slots",
    "topdown-be-bound",
    "topdown-fe-bound",
    "topdown-bad-spec",
    "topdown-retiring",
    "topdown-mem-bound",
)


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """The PMU's folder of a processor with all top-down events."""
    (tmp_path / "events").mkdir()
    (tmp_path / "type").write_text("4\n")
    for place, name in enumerate(TOP_DOWN):
        (tmp_path / "events" / name).write_text(f"event=0x00,umask=0x{0x80 + place:x}\n")
    return tmp_path


def told(sets: list[EventSet]) -> tuple[dict[Metric, Event], dict[Metric, str]]:
    """Return the events and the reasons by metric."""
    counted = {metric: found.events[ratio.above] for found in sets for metric, ratio in found.ratios.items()}
    return counted, {metric: reason for found in sets for metric, reason in found.missing.items()}


@pytest.mark.parametrize("cpu", [SAPPHIRE, SKYLAKE, ZEN_3, ZEN_4, ZEN_5, Processor(), Processor(INTEL, 6, 1)], ids=str)
def test_each_feature_is_counted_or_has_a_reason(cpu: Processor, device: Path) -> None:
    counted, missing = told(event_sets(cpu, device))
    assert {*counted, *missing} == set(COUNTERS)
    assert not set(counted) & set(missing)


def test_a_new_xeon_counts_all_features(device: Path) -> None:
    counted, missing = told(event_sets(SAPPHIRE, device))
    assert missing == {}
    assert counted[Metric.DRAM_BOUND_PERCENT] == Event(RAW, 0x60006A3)
    assert counted[Metric.DTLB_WALKS_PER_KILO] == Event(RAW, 0xE12)
    assert counted[Metric.L3_MISS_LATENCY_CYCLES] == Event(RAW, 0x1020)


def test_an_old_one_counts_them_by_other_codes() -> None:
    counted, _ = told(event_sets(SKYLAKE, Path("/none")))
    assert counted[Metric.DTLB_WALKS_PER_KILO] == Event(RAW, 0xE08)
    assert counted[Metric.L3_MISS_PARALLELISM] == Event(RAW, 0x1060)


def test_amds_cache_misses_are_those_of_the_last_cache() -> None:
    """The kernel's generic event is of AMD's second cache."""
    counted, missing = told(event_sets(ZEN_3))
    assert counted[Metric.CACHE_MISSES_PER_KILO] == Event(RAW, 0x4844)
    assert missing[Metric.L3_MISS_LATENCY_CYCLES] == NOT_COUNTED
    assert Metric.BACKEND_BOUND_PERCENT not in told(event_sets(ZEN_3, Path("/none")))[0]
    assert told(event_sets(ZEN_4))[0][Metric.BACKEND_BOUND_PERCENT] == Event(RAW, 0x1_00001EA0)


def test_an_unknown_processor_is_told_and_not_guessed_at() -> None:
    assert not is_known(Processor(INTEL, 6, 1))
    assert told(event_sets(Processor(INTEL, 6, 1)))[1][Metric.L2_MISSES_PER_KILO] == NOT_KNOWN


def test_the_processor_is_that_of_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: Zen\n")
    assert processor(path) == ZEN_4
    path.write_text("processor\t: 0\nCPU implementer\t: 0x41\n")
    assert processor(path) == Processor()


def test_figures_are_of_all_threads_and_of_their_time() -> None:
    """Two threads of half a second each: 2**20 lines of 64 bytes are 64 MiB in a second."""
    events = EventSet(
        (raw(1, 0), raw(2, 0)),
        {
            Metric.INSTRUCTIONS_PER_CYCLE: Ratio(1, 0),
            Metric.READ_MIB_PER_CPU_SECOND: Ratio(1, RUNNING, 64 / 2**20 * 1e9),
        },
    )
    half = Counts(500_000_000, (2**18, 2**19))
    nothing = Counts(0, (0, 0))
    assert dict(figures(events, [(nothing, half), (nothing, half)])) == {
        Metric.INSTRUCTIONS_PER_CYCLE: 2.0,
        Metric.READ_MIB_PER_CPU_SECOND: pytest.approx(64.0),
    }
    assert dict(figures(events, [(half, half)])) == {}
