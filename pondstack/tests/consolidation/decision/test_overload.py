"""Thresholds of overload by each algorithm, computed by hand from the paper's formulas."""

import pytest

from pondstack.consolidation.decision.overload import ALGORITHMS
from pondstack.consolidation.decision.settings import Settings

SETTINGS = Settings(overload_percent=80.0, step_seconds=60.0)


def threshold(name: str, load: list[float], settings: Settings = SETTINGS, copy_seconds: float = 60.0) -> float:
    return ALGORITHMS[name].threshold(load, settings, copy_seconds)


def test_static():
    assert threshold("static", [1.0, 99.0]) == 80.0


def test_mad():
    """MAD of 10, 10, 20, 20, 40, 60, 90 is 10, and 100 - 2.5 * 10 is 75."""
    load = [10.0, 10.0, 20.0, 20.0, 40.0, 60.0, 90.0]
    assert threshold("mad", load) == 75.0
    assert threshold("mad", load, Settings(safety=1.0)) == 90.0


def test_iqr():
    """IQR of 10, 20, 30, 40 is 15, and 100 - 1.5 * 15 is 77.5."""
    assert threshold("iqr", [10.0, 20.0, 30.0, 40.0]) == 77.5


@pytest.mark.parametrize(("newest", "overloaded"), [(75.0, False), (85.0, True)])
def test_local_regression(newest, overloaded):
    """A load that grows by 5 each step is 5 more after a copy of one step: 1.2 * 80 is no overload, 1.2 * 90 is."""
    load = [newest - 5.0 * step for step in range(9, -1, -1)]
    assert (newest >= threshold("local-regression", load)) is overloaded


def test_local_regression_looks_as_far_as_a_migration_takes():
    load = [75.0 - 5.0 * step for step in range(9, -1, -1)]
    assert threshold("local-regression", load, copy_seconds=120.0) <= 75.0  # 1.2 * 85


def test_what_needs_a_history_says_so():
    assert {name for name, found in ALGORITHMS.items() if not found.adaptive} == {"static"}
