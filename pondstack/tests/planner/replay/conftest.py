"""Small histories, made by hand."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pondstack.planner.history import History
from pondstack.planner.settings import Settings

Server = tuple[int, int, float, int]
"""Start, end, vCPUs, MiB."""


@pytest.fixture
def make_history() -> Callable[..., History]:
    """Return what makes a history of servers, sorted by start; columns may be given by name, one value for all."""

    def make(servers: Sequence[Server], **columns: Any) -> History:
        rows = sorted(servers, key=lambda row: row[0])
        count = len(rows)
        drawn = {
            name: np.full(count, columns.pop(name, 0.0), np.float64)
            for name in (
                "load_percent",
                "untouched",
                "insensitivity",
                "has_history",
                "label",
                "over",
                "factor",
            )
        }
        return History(
            start=np.array([row[0] for row in rows], np.int64),
            end=np.array([row[1] for row in rows], np.int64),
            cpu=np.array([round(row[2] * 1000) for row in rows], np.int32),
            memory_mib=np.array([row[3] for row in rows], np.int32),
            **drawn,
            sockets=columns.get("sockets", 1),
            counted_from=columns.get("counted_from", 0),
            last=columns.get("last", max(row[1] for row in rows)),
        )

    return make


@pytest.fixture
def settings() -> Settings:
    """Return settings that offline at once and keep no buffer, so that figures can be reckoned by hand."""
    return Settings(
        seeds=(1,), buffer_least_slices=0, buffer_most_percent=0, offline_ms_per_gib=0.0, warmup_percent=0.0
    )
