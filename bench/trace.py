"""VM requests to replay: read from a trace in the format of azure2017, or generated in the same shape.

The format: gzip'd or plain CSV with the columns arrival_s, batch_id, cores, mem_gb, dur_lo_s, dur_hi_s (bounds of the
lifetime) and others that are not used. Arrivals are known to 300 s only: they are spread evenly over that time.
"""

import csv
import gzip
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TypeVar

Kind = TypeVar("Kind")
BIN_SECONDS = 300
GIB_MIB = 1024


class BadTrace(ValueError):
    """The file is no trace; the text names the line and what it should hold."""


@dataclass(frozen=True, slots=True)
class Request:
    """One VM as a tenant asked for it; times in seconds of the trace, the first arrival is at 0."""

    arrival_seconds: float
    lifetime_seconds: float
    vcpus: int
    memory_mib: int


def load(path: Path, count: int, seed: int, skip: int = 0, least_mib: int = 0) -> list[Request]:
    """Read `count` requests after the first `skip`, in order of arrival. Raises BadTrace, OSError.

    `least_mib`: requests for less memory are left out.
    """
    chance = random.Random(seed)
    with _open(path) as lines:
        rows = islice(enumerate(csv.DictReader(lines), 2), skip, None)
        found = (_request(row, number, chance) for number, row in rows)
        requests = list(islice((item for item in found if item.memory_mib >= least_mib), count))
    if len(requests) < count:
        of = f" of at least {least_mib} MiB" if least_mib else ""
        raise BadTrace(f"{path} has {len(requests)} requests{of} after the first {skip}, not {count}: lower REQUESTS")
    return _from_zero(requests)


def _open(path: Path) -> IO[str]:
    return gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="")


def _request(row: dict[str, str], number: int, chance: random.Random) -> Request:
    try:
        low, high = float(row["dur_lo_s"]), float(row["dur_hi_s"])
        request = Request(
            arrival_seconds=float(row["arrival_s"]) + chance.uniform(0, BIN_SECONDS),
            lifetime_seconds=chance.uniform(low, high),
            vcpus=int(row["cores"]),
            memory_mib=round(float(row["mem_gb"]) * GIB_MIB),
        )
    except (KeyError, TypeError, ValueError) as error:
        wanted = "numbers in arrival_s, cores, mem_gb, dur_lo_s, dur_hi_s"
        raise BadTrace(f"line {number}: {error!r}; wanted {wanted}") from None
    if not (0 <= low <= high and request.vcpus > 0 and request.memory_mib > 0):
        raise BadTrace(f"line {number}: {dict(row)} is no VM")
    return request


def _from_zero(requests: list[Request]) -> list[Request]:
    requests = sorted(requests, key=lambda request: request.arrival_seconds)
    first = requests[0].arrival_seconds if requests else 0.0
    return [
        Request(item.arrival_seconds - first, item.lifetime_seconds, item.vcpus, item.memory_mib) for item in requests
    ]


# Percentages of azure2017 as a whole (259,159 requests, lifetimes of those that ended): the shape, not its rows.
SIZES = ((1, 1792, 60.4), (2, 3584, 18.5), (4, 7168, 9.9), (8, 14336, 9.0), (1, 768, 1.6), (8, 57344, 0.6))
LIFETIMES = (
    (0, 0, 2.9),
    (300, 600, 21.5),
    (900, 1200, 22.8),
    (1500, 1800, 13.6),
    (2100, 3600, 12.0),
    (3900, 7200, 8.1),
    (7500, 14400, 5.3),
    (14700, 43200, 8.2),
    (43500, 86400, 4.3),
    (86700, 259200, 1.3),
)
BATCHES = ((1, 57.9), (2, 18.5), (3, 6.2), (4, 3.8), (5, 2.3), (8, 4.2), (12, 1.7), (40, 5.4))
REQUESTS_PER_BIN = 259


def generate(count: int, seed: int, least_mib: int = 0) -> list[Request]:
    """Make `count` requests in the shape of azure2017: sizes, lifetimes, batches of one size, arrivals per 300 s.

    `least_mib`: smaller sizes are left out. Raises BadTrace where none is left.
    """
    chance = random.Random(seed)
    sizes = [((cores, mib), weight) for cores, mib, weight in SIZES if mib >= least_mib]
    if not sizes:
        raise BadTrace(f"no size of the generated trace has {least_mib} MiB: lower LEAST_MIB")
    requests: list[Request] = []
    while len(requests) < count:
        vcpus, memory_mib = _pick(chance, sizes)
        arrival = len(requests) // REQUESTS_PER_BIN * BIN_SECONDS + chance.uniform(0, BIN_SECONDS)
        for _ in range(min(_pick(chance, BATCHES), count - len(requests))):
            low, high = _pick(chance, [((low, high), weight) for low, high, weight in LIFETIMES])
            requests.append(Request(arrival, chance.uniform(low, high), vcpus, memory_mib))
    return _from_zero(requests)


def _pick(chance: random.Random, weighted: Sequence[tuple[Kind, float]]) -> Kind:
    return chance.choices([value for value, _ in weighted], [weight for _, weight in weighted])[0]
