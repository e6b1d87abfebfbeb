"""SYNTHETIC requests in the shape of azure2017 (bench.trace), as many millions as are wanted."""

import numpy as np
import polars

from bench.trace import LIFETIMES, SIZES
from pondstack.planner.trace import Trace

SERVERS_PER_SECOND = 0.5


def synthetic(count: int, seed: int = 1) -> Trace:
    """Return a trace of `count` servers that come at a steady rate, so that as many run at once however many come."""
    draw = np.random.default_rng(seed)
    sizes, lifetimes = np.array(SIZES), np.array(LIFETIMES)
    size = draw.choice(len(sizes), count, p=sizes[:, 2] / sizes[:, 2].sum())
    lifetime = draw.choice(len(lifetimes), count, p=lifetimes[:, 2] / lifetimes[:, 2].sum())
    start = np.sort(draw.integers(0, max(1, round(count / SERVERS_PER_SECOND)), count))
    lasts = draw.integers(lifetimes[lifetime, 0].astype(np.int64), lifetimes[lifetime, 1].astype(np.int64) + 1)
    unknown = polars.Series([None], dtype=polars.Float32)
    servers = polars.DataFrame(
        {
            "start_seconds": start,
            "end_seconds": start + 1 + lasts,
            "vcpus": sizes[size, 0].astype(np.float32),
            "memory_mib": sizes[size, 1].astype(np.int64),
        }
    ).with_columns(
        load_percent=unknown.extend_constant(None, count - 1),
        untouched_percent=unknown.extend_constant(None, count - 1),
        group=polars.Series([None], dtype=polars.Utf8).extend_constant(None, count - 1),
    )
    return Trace("bench", "synthetic", servers, int(start[-1]) + 1, ())
