"""A generated trace, which ships as code. SYNTHETIC: a stated model in the shape of published clouds, no measurement.

The model, all of it drawn from one seed:

- Groups (customers) have weights by Zipf's law. Each has a mean of untouched memory and of CPU load, a favoured size,
  and a share of long servers, so that the past of a group says something of its next server, as Pond 4.4 relies on.
- Batches of a group arrive by a Poisson process whose rate follows the hour of the day and falls at weekends; a batch
  has servers of one size (geometric numbers), as in azure2017.
- Sizes are vCPUs and GiB per vCPU in shares near those of Azure's mixed fleet.
- Lifetimes: short ones are log-normal around half an hour, long ones around five days with a heavy tail (Cortez et al.,
  SOSP'17: most servers are short, most core hours are of long ones).
- At 0 a cloud is there already: the long servers of the time before that still run, drawn by their lifetimes.
- Untouched memory is Beta distributed around its group's mean; the groups' means have a median near 50 % (Pond 3.2).
"""

from dataclasses import dataclass

import numpy
import polars

from pondstack.domain.errors import BadRequest
from pondstack.planner.trace import Trace
from pondstack.planner.traces import rows
from pondstack.planner.traces.imported import Imported

ORIGIN = "synthetic"
DAY, HOUR = 86_400, 3_600
VCPUS = ((1, 0.26), (2, 0.30), (4, 0.24), (8, 0.13), (16, 0.05), (32, 0.02))
GIB_PER_VCPU = ((2, 0.32), (4, 0.46), (8, 0.22))
SHORT_SECONDS, SHORT_SIGMA = 1_800.0, 1.2
LONG_SECONDS, LONG_SIGMA = 5.0 * DAY, 1.3
MEAN_BATCH = 2.0
DAY_SWING, WEEKEND = 0.45, 0.6
PEAK_HOUR = 14
UNTOUCHED_SPREAD, LOAD_SPREAD = 8.0, 6.0
BEFORE_DAYS = 60
"""How far back servers are drawn that still run at 0."""


@dataclass(frozen=True, slots=True)
class Model:
    """How much is generated. `servers`: about so many that start within the days; `long_percent`: of all starts."""

    servers: int = 20_000
    days: int = 14
    groups: int = 120
    long_percent: float = 15.0


@dataclass(frozen=True, slots=True)
class _Groups:
    weight: numpy.ndarray
    untouched: numpy.ndarray
    load: numpy.ndarray
    long: numpy.ndarray
    vcpus: numpy.ndarray
    ratio: numpy.ndarray


def generate(model: Model, seed: int, name: str = "") -> Imported:
    """Return the trace of a model; the same for the same seed. Raises BadRequest for a model of nothing."""
    if min(model.servers, model.days, model.groups) < 1 or not 0 <= model.long_percent <= 100:
        raise BadRequest(f"{model}: servers, days and groups are 1 or more, long_percent is from 0 to 100")
    chance = numpy.random.default_rng(seed)
    groups = _groups(chance, model)
    within = _starts(chance, 0, model.days, model.servers)
    rate = model.servers / model.days
    before = _starts(chance, -BEFORE_DAYS, 0, max(1, round(rate * BEFORE_DAYS)))
    frame = polars.concat([_present(_drawn(chance, groups, before)), _drawn(chance, groups, within)])
    end = model.days * DAY
    servers = frame.sort("start_seconds", maintain_order=True).with_columns(
        polars.when(polars.col("end_seconds") <= end).then(polars.col("end_seconds"))
    )
    note = f"SYNTHETIC: drawn from a model ({model.servers} servers in {model.days} days, seed {seed}), not measured"
    trace = Trace(name or f"synthetic, seed {seed}", ORIGIN, servers.select(list(rows.SCHEMA)), end, ())
    return Imported(trace, servers.height, (note,))


def _groups(chance: numpy.random.Generator, model: Model) -> _Groups:
    weight = 1.0 / numpy.arange(1, model.groups + 1) ** 0.9
    return _Groups(
        weight=weight / weight.sum(),
        untouched=chance.beta(1.6, 1.6, model.groups),
        load=chance.beta(1.5, 5.0, model.groups),
        long=numpy.clip(chance.beta(0.8, 0.8 * (100 / max(model.long_percent, 1e-9) - 1) + 1e-9, model.groups), 0, 1),
        vcpus=_pick(chance, VCPUS, model.groups),
        ratio=_pick(chance, GIB_PER_VCPU, model.groups),
    )


def _pick(chance: numpy.random.Generator, weighted: tuple[tuple[int, float], ...], number: int) -> numpy.ndarray:
    values = numpy.array([value for value, _ in weighted])
    weights = numpy.array([weight for _, weight in weighted])
    return chance.choice(values, number, p=weights / weights.sum())


def _starts(chance: numpy.random.Generator, first_day: int, last_day: int, servers: int) -> numpy.ndarray:
    """Return when batches arrive, in seconds: a Poisson process by hour."""
    hours = numpy.arange(first_day * 24, last_day * 24)
    rate = 1 + DAY_SWING * numpy.cos((hours - PEAK_HOUR) * 2 * numpy.pi / 24)
    rate = rate * numpy.where(hours // 24 % 7 >= 5, WEEKEND, 1.0)
    batches = chance.poisson(rate / rate.sum() * servers / MEAN_BATCH)
    return (numpy.repeat(hours, batches) * HOUR + chance.integers(0, HOUR, batches.sum())).astype(numpy.int64)


def _drawn(chance: numpy.random.Generator, groups: _Groups, starts: numpy.ndarray) -> polars.DataFrame:
    """Return the servers of batches."""
    owner = chance.choice(len(groups.weight), len(starts), p=groups.weight)
    favoured = chance.random(len(starts)) < 0.6
    vcpus = numpy.where(favoured, groups.vcpus[owner], _pick(chance, VCPUS, len(starts)))
    gib = vcpus * numpy.where(favoured, groups.ratio[owner], _pick(chance, GIB_PER_VCPU, len(starts)))
    size = chance.geometric(1 / MEAN_BATCH, len(starts))
    owner, vcpus, gib, start = (numpy.repeat(values, size) for values in (owner, vcpus, gib, starts))
    long = chance.random(len(owner)) < groups.long[owner]
    normal = chance.standard_normal(len(owner))
    seconds = numpy.where(
        long, LONG_SECONDS * numpy.exp(LONG_SIGMA * normal), SHORT_SECONDS * numpy.exp(SHORT_SIGMA * normal)
    )
    return polars.DataFrame(
        {
            "start_seconds": start,
            "end_seconds": start + numpy.maximum(60, seconds).astype(numpy.int64),
            "vcpus": vcpus.astype(numpy.float32),
            "memory_mib": gib.astype(numpy.int64) * 1024,
            "load_percent": (100 * _around(chance, groups.load[owner], LOAD_SPREAD)).astype(numpy.float32),
            "untouched_percent": (100 * _around(chance, groups.untouched[owner], UNTOUCHED_SPREAD)).astype(
                numpy.float32
            ),
            "group": [f"group-{number + 1}" for number in owner],
        },
        schema=dict(rows.SCHEMA),
    )


def _around(chance: numpy.random.Generator, mean: numpy.ndarray, spread: float) -> numpy.ndarray:
    mean = numpy.clip(mean, 0.01, 0.99)
    return chance.beta(mean * spread, (1 - mean) * spread)


def _present(before: polars.DataFrame) -> polars.DataFrame:
    """Return what still runs at 0 of what started before, as being there from 0 on."""
    return before.filter(polars.col("end_seconds") > 0).with_columns(start_seconds=polars.lit(0, polars.Int64))
