"""Counters that tell how sensitive to latency a guest is, as rows of figures (Pond 4.4, Fig. 12). Pure.

A counter that was not measured is NaN, never zero: a model whose feature is not known refuses.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from pondstack.domain.errors import BadRequest
from pondstack.domain.telemetry import Metric

COUNTERS: tuple[str, ...] = tuple(
    str(metric)
    for metric in (
        Metric.INSTRUCTIONS_PER_CYCLE,
        Metric.CACHE_MISSES_PER_KILO,
        Metric.FRONTEND_BOUND_PERCENT,
        Metric.BAD_SPECULATION_PERCENT,
        Metric.RETIRING_PERCENT,
        Metric.BACKEND_BOUND_PERCENT,
        Metric.MEMORY_BOUND_PERCENT,
        Metric.DRAM_BOUND_PERCENT,
        Metric.STORE_BOUND_PERCENT,
        Metric.L2_MISSES_PER_KILO,
        Metric.L3_MISS_LATENCY_CYCLES,
        Metric.L3_MISS_PARALLELISM,
        Metric.DTLB_WALKS_PER_KILO,
        Metric.READ_MIB_PER_CPU_SECOND,
    )
)
"""Names of the figures of a row, in its order. A model may need only some of them."""


class UnknownCounter(BadRequest):
    """A counter that a model needs was not measured."""


def row_of(values: Mapping[str, float | None]) -> list[float]:
    """Return the row of some counters by name; what is not there, or None, is not known. Other names are dropped."""
    known = (values.get(name) for name in COUNTERS)
    return [math.nan if value is None else float(value) for value in known]


def unknown(features: Iterable[str], row: Sequence[float]) -> list[str]:
    """Return those of some features that a row does not know."""
    return [name for name in features if not math.isfinite(row[COUNTERS.index(name)])]


def selected(features: Sequence[str], rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return some columns of rows of COUNTERS. Raises UnknownCounter (which row, what) where one is not known."""
    for place, row in enumerate(rows):
        missing = unknown(features, row)
        if missing:
            raise UnknownCounter(
                f"row {place}: {', '.join(missing)} not measured, and the model needs it; it says nothing of this one"
            )
    places = [COUNTERS.index(name) for name in features]
    return [[row[place] for place in places] for row in rows]
