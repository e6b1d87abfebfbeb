"""Numbers that look random."""

import polars

from pondstack.planner.traces import chance


def test_numbers_are_even_independent_and_the_same_everywhere() -> None:
    frame = polars.DataFrame({"row": range(20_000)}).select(
        one=chance.uniform(polars.col("row"), 1), two=chance.uniform(polars.col("row"), 2)
    )
    for name in ("one", "two"):
        values = frame[name]
        assert 0 <= values.min() <= values.max() <= 1
        counts = [values.is_between(low, low + 0.25, closed="left").sum() for low in (0, 0.25, 0.5, 0.75)]
        assert all(4_700 < count < 5_300 for count in counts)
    assert abs(frame.select(polars.corr("one", "two")).item()) < 0.03
    # SplitMix64 with seed 0 begins with this number.
    first = polars.DataFrame({"row": [0]}).select(chance.uniform(polars.col("row"), 0)).item()
    assert first == 0xE220A8397B1DCDAF / 2**64
