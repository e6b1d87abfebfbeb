"""Names, coverage and shares of the history."""

from datetime import UTC, datetime

import pytest

from pondstack.domain.history import Lifetime, coverage, name_key, percentile, untouched_shares

BASE = Lifetime("i", "p", "f", 1000, 1, "", "", "", datetime(2026, 1, 1, tzinfo=UTC), None, 250, 0.6)


def test_names_of_a_pattern_are_alike_and_tell_nothing():
    keys = {name_key(name, "salt") for name in ("web-1", "WEB-27 ", "web-0635cccd-1e78-5473-b66a-bacffc433357")}
    assert len(keys) == 1
    assert name_key("db-1", "salt") not in keys
    assert name_key("web-1", "other salt") not in keys
    assert name_key("  ", "salt") == ""
    assert "web" not in keys.pop()


@pytest.mark.parametrize(
    ("observed", "first", "end", "share"),
    [
        (500.0, 100.0, 1000.0, 0.6),
        (500.0, 400.0, 1000.0, 0.5),  # too long until the first look
        (500.0, -50.0, 1000.0, 0.5),  # a clock that is wrong
        (2000.0, 100.0, 1000.0, 1.0),
        (0.0, 0.0, 0.0, 0.0),
    ],
)
def test_coverage(observed, first, end, share):
    assert coverage(observed, 0.0, first, end, 300.0) == pytest.approx(share)


def test_labels_that_saw_too_little_count_in_nothing():
    lives = [BASE.trained_with(limit) for limit in (0.0, 0.6, 0.7)]
    assert [item.untouched_mib for item in lives] == [250, 250, None]
    assert untouched_shares(lives) == [0.25, 0.25]


def test_percentiles():
    values = [0.4, 0.1, 0.3, 0.2]
    assert [percentile(values, percent) for percent in (1, 50, 75, 100)] == [0.1, 0.2, 0.3, 0.4]
    assert percentile([], 50) is None
