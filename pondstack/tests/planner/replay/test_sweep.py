"""Sweeps: what is kept is not reckoned again."""

from pathlib import Path

import pytest

from pondstack.planner.settings import Settings
from pondstack.planner.sweep import Results, digest_of, sweep
from pondstack.tests.planner.replay.test_history import make_trace


def square(number: int) -> dict:
    """Return a record; 3 cannot be squared."""
    if number == 3:
        raise ZeroDivisionError("3")
    return {"square": number * number}


def parts(*numbers: int):
    """Return the parts of a sweep."""
    return [(f"n-{number}", square, (number,)) for number in numbers]


def test_an_interrupted_sweep_goes_on(tmp_path: Path) -> None:
    """What was done before the third failed is there, and told of first."""
    with pytest.raises(ZeroDivisionError):
        sweep(parts(1, 2, 3), Results(tmp_path, "d" * 64))
    told: list[int] = []
    found = sweep(parts(1, 2, 4), Results(tmp_path, "d" * 64), progress=told.append)
    assert found == {"n-1": {"square": 1}, "n-2": {"square": 4}, "n-4": {"square": 16}}
    assert told == [2, 3]


def test_a_file_that_was_cut_short_is_reckoned_anew(tmp_path: Path) -> None:
    """As after a full disk."""
    results = Results(tmp_path, "d" * 64)
    results.put("n-2", {"square": 4})
    next(tmp_path.glob("*/n-2.json")).write_text('{"squ')
    assert sweep(parts(2), results) == {"n-2": {"square": 4}}


def test_two_processes_give_what_one_gives() -> None:
    """In any order."""
    assert sweep(parts(1, 2, 4, 5), Results(None, ""), jobs=2) == sweep(parts(1, 2, 4, 5), Results(None, ""))


def test_other_traces_and_settings_have_other_results() -> None:
    """Prices and the extent of the sweep do not matter: a wider one uses what is kept."""
    trace, settings = make_trace([(0, 10, 1, 1024)]), Settings()
    digest = digest_of(trace, settings)
    assert digest == digest_of(make_trace([(0, 10, 1, 1024)]), Settings(seeds=(7,), emc_price=1.0))
    assert digest != digest_of(make_trace([(0, 11, 1, 1024)]), settings)
    assert digest != digest_of(make_trace([(0, 10, 1, 1024)], last=99), settings)
    assert digest != digest_of(trace, Settings(slice_mib=2048))
