"""Events by model of processor, for what a model of latency sensitivity needs (Pond 4.4, Memstrata, CAMP). Pure.

The codes are those that the vendors publish, as the kernel's tools/perf/pmu-events has them. What a model does not
count is told with a reason, and never taken from an event that means something else.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pondstack.domain.telemetry import Metric
from pondstack_agent.telemetry import perf
from pondstack_agent.telemetry.events import RUNNING, EventSet, Ratio
from pondstack_agent.telemetry.perf import CYCLES, HARDWARE, INSTRUCTIONS, RAW, Event

CPUINFO = Path("/proc/cpuinfo")
INTEL, AMD = "GenuineIntel", "AuthenticAMD"
LINE_MIB_PER_NANOSECOND = 64 / 2**20 * 1e9
"""What one cache line each nanosecond comes to, in MiB a second."""
NO_TOP_DOWN = "this machine's counters do not tell of the pipeline's slots (top-down events)"
NOT_COUNTED = "this model of processor does not count it for a single core"
NOT_KNOWN = "the agent does not know the events of this model of processor"
_SLOTS = {25: 6, 26: 8}
"""Operations a cycle of AMD's families, Zen 4 and 5."""


@dataclass(frozen=True, slots=True)
class Processor:
    """A model of processor, as /proc/cpuinfo has it."""

    vendor: str = ""
    family: int = 0
    model: int = 0

    def __str__(self) -> str:
        return f"{self.vendor}-{self.family}-{self.model}"


@dataclass(frozen=True, slots=True)
class _Intel:
    """What differs among Intel's cores: event codes, and the counter mask of stalls by stores."""

    outstanding: int
    requests: int
    walks: int
    stores_mask: int


_SKYLAKE, _ICE_LAKE, _SAPPHIRE_RAPIDS = (
    _Intel(0x60, 0xB0, 0x08, 0),
    _Intel(0x60, 0xB0, 0x08, 2),
    _Intel(0x20, 0x21, 0x12, 2),
)
_INTEL: Mapping[int, _Intel] = {
    85: _SKYLAKE,
    106: _ICE_LAKE,
    108: _ICE_LAKE,
    143: _SAPPHIRE_RAPIDS,
    207: _SAPPHIRE_RAPIDS,
    173: _SAPPHIRE_RAPIDS,
    174: _SAPPHIRE_RAPIDS,
}
"""By model (family 6): Xeon Scalable, Skylake to Cooper Lake, Ice Lake, then Sapphire, Emerald and Granite Rapids."""
_STALLS = (Metric.DRAM_BOUND_PERCENT, Metric.STORE_BOUND_PERCENT, Metric.L2_MISSES_PER_KILO, Metric.DTLB_WALKS_PER_KILO)
_LATENCY = (Metric.L3_MISS_LATENCY_CYCLES, Metric.L3_MISS_PARALLELISM)


def processor(cpuinfo: Path = CPUINFO) -> Processor:
    """Return this machine's; of architectures that say it otherwise, one of which nothing is known."""
    text = cpuinfo.read_text()
    found = [re.search(rf"^{name}\s*:\s*(\S+)$", text, re.MULTILINE) for name in ("vendor_id", "cpu family", "model")]
    vendor, family, model = (match[1] if match else "" for match in found)
    return Processor(vendor, int(family), int(model)) if family.isdigit() and model.isdigit() else Processor(vendor)


def raw(code: int, umask: int, mask: int = 0) -> Event:
    """Return an event by its code, umask and counter mask; AMD's fourth digit of a code has bits of its own."""
    return Event(RAW, (code & 0xFF) | (code >> 8) << 32 | umask << 8 | mask << 24)


def event_sets(cpu: Processor, device: Path = perf.DEVICE) -> list[EventSet]:
    """Return what is counted on this machine: each metric of a model's features is in one set, or has its reason."""
    return [_general(cpu), _top_down(cpu, device), *_memory(cpu)]


def is_known(cpu: Processor) -> bool:
    """Return whether the events of a processor's model are known."""
    return _zen(cpu) or _intel(cpu) is not None


def _zen(cpu: Processor) -> bool:
    return cpu.vendor == AMD and cpu.family in _SLOTS


def _intel(cpu: Processor) -> _Intel | None:
    return _INTEL.get(cpu.model) if cpu.vendor == INTEL and cpu.family == 6 else None


def _general(cpu: Processor) -> EventSet:
    """AMD's generic event of cache misses is of the second cache: data that came from memory is counted instead."""
    misses = raw(0x44, 0x48) if _zen(cpu) else Event(HARDWARE, perf.CACHE_MISSES)
    events = (Event(HARDWARE, CYCLES), Event(HARDWARE, INSTRUCTIONS), misses)
    ratios = {Metric.INSTRUCTIONS_PER_CYCLE: Ratio(1, 0), Metric.CACHE_MISSES_PER_KILO: Ratio(2, 1, 1000.0)}
    if _zen(cpu) or cpu.vendor == INTEL:
        return EventSet(events, {**ratios, Metric.READ_MIB_PER_CPU_SECOND: Ratio(2, RUNNING, LINE_MIB_PER_NANOSECOND)})
    return EventSet(events, ratios, missing={Metric.READ_MIB_PER_CPU_SECOND: NOT_KNOWN})


def _top_down(cpu: Processor, device: Path) -> EventSet:
    if _zen(cpu) and (cpu.family == 26 or 0x10 <= cpu.model < 0x20 or cpu.model >= 0x60):
        scale = 100.0 / _SLOTS[cpu.family]
        named = {
            Metric.FRONTEND_BOUND_PERCENT: raw(0x1A0, 0x01),
            Metric.BACKEND_BOUND_PERCENT: raw(0x1A0, 0x1E),
            Metric.RETIRING_PERCENT: raw(0xC1, 0x00),
        }
        ratios = {metric: Ratio(place, 0, scale) for place, metric in enumerate(named, 1)}
        absent = dict.fromkeys((Metric.BAD_SPECULATION_PERCENT, Metric.MEMORY_BOUND_PERCENT), NO_TOP_DOWN)
        return EventSet((raw(0x76, 0x00), *named.values()), ratios, missing=absent)
    return top_down(device)


def top_down(device: Path = perf.DEVICE) -> EventSet:
    """Return the top-down events that the PMU names. The slots lead: the others are counted with them only."""
    slots = perf.event_of("slots", device)
    named = {
        Metric.BACKEND_BOUND_PERCENT: perf.event_of("topdown-be-bound", device),
        Metric.FRONTEND_BOUND_PERCENT: perf.event_of("topdown-fe-bound", device),
        Metric.BAD_SPECULATION_PERCENT: perf.event_of("topdown-bad-spec", device),
        Metric.RETIRING_PERCENT: perf.event_of("topdown-retiring", device),
        Metric.MEMORY_BOUND_PERCENT: perf.event_of("topdown-mem-bound", device),
    }
    known = {metric: event for metric, event in named.items() if event is not None}
    if slots is None or not known:
        return EventSet((), {}, missing=dict.fromkeys(named, NO_TOP_DOWN))
    ratios = {metric: Ratio(place, 0, 100.0) for place, metric in enumerate(known, 1)}
    absent = {metric: NO_TOP_DOWN for metric in named if metric not in known}
    return EventSet((slots, *known.values()), ratios, missing=absent)


def _memory(cpu: Processor) -> list[EventSet]:
    """Sets of three: with more, a counter that something else holds may keep all of them from being counted."""
    instructions, cycles = Event(HARDWARE, INSTRUCTIONS), Event(HARDWARE, CYCLES)
    if _zen(cpu):
        ratios = {Metric.L2_MISSES_PER_KILO: Ratio(1, 0, 1000.0), Metric.DTLB_WALKS_PER_KILO: Ratio(2, 0, 1000.0)}
        absent = {metric: NOT_COUNTED for metric in (*_STALLS, *_LATENCY) if metric not in ratios}
        return [EventSet((instructions, raw(0x64, 0x09), raw(0x45, 0xF0)), ratios, missing=absent)]
    codes = _intel(cpu)
    if codes is None:
        return [EventSet((), {}, missing=dict.fromkeys((*_STALLS, *_LATENCY), NOT_KNOWN))]
    stalls = (cycles, raw(0xA3, 0x06, 6), raw(0xA6, 0x40, codes.stores_mask))
    misses = (instructions, raw(0x24, 0x3F), raw(codes.walks, 0x0E))
    waits = (raw(codes.requests, 0x10), raw(codes.outstanding, 0x10), raw(codes.outstanding, 0x10, 1))
    return [
        EventSet(
            stalls, {Metric.DRAM_BOUND_PERCENT: Ratio(1, 0, 100.0), Metric.STORE_BOUND_PERCENT: Ratio(2, 0, 100.0)}
        ),
        EventSet(
            misses, {Metric.L2_MISSES_PER_KILO: Ratio(1, 0, 1000.0), Metric.DTLB_WALKS_PER_KILO: Ratio(2, 0, 1000.0)}
        ),
        EventSet(waits, {Metric.L3_MISS_LATENCY_CYCLES: Ratio(1, 0), Metric.L3_MISS_PARALLELISM: Ratio(1, 2)}),
    ]
