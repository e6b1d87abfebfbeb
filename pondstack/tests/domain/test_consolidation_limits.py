"""What may be set of consolidation at run time."""

import pytest

from pondstack.domain.consolidation_limits import NOTHING_SET, ConsolidationLimits
from pondstack.domain.errors import BadRequest


def test_one_is_set_and_the_other_left():
    found = ConsolidationLimits(least_awake=3).changed({"reserve_percent": 20})
    assert found == ConsolidationLimits(20, 3)
    assert found.given == {"reserve_percent": 20, "least_awake": 3}
    assert found.changed({"reserve_percent": None, "least_awake": None}) == NOTHING_SET


def test_zero_is_set_too():
    assert NOTHING_SET.changed({"reserve_percent": 0, "least_awake": 0}).given == {
        "reserve_percent": 0,
        "least_awake": 0,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"most_woken": 1},
        {"reserve_percent": True},
        {"reserve_percent": -0.1},
        {"reserve_percent": 100.1},
        {"reserve_percent": float("nan")},
        {"reserve_percent": "20"},
        {"least_awake": 1.5},
        {"least_awake": False},
        {"least_awake": -1},
        {"least_awake": 1000001},
    ],
)
def test_what_is_wrong_is_refused(wrong):
    with pytest.raises(BadRequest, match=r"cannot be set|is wrong"):
        NOTHING_SET.changed(wrong)
