"""Extents and the values built on them."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondstack.domain.model import Allocation, Extent, extents_of, indexes_of


@given(st.sets(st.integers(0, 300)))
def test_extents_cover_exactly_the_indexes_with_no_two_adjacent(indexes: set[int]) -> None:
    extents = extents_of(indexes)
    assert sorted(indexes_of(extents)) == sorted(indexes)
    assert all(left.start + left.count < right.start for left, right in itertools.pairwise(extents))


@pytest.mark.parametrize(("start", "count"), [(-1, 1), (0, 0), (3, -2)])
def test_an_impossible_extent_is_refused(start: int, count: int) -> None:
    with pytest.raises(ValueError, match="no such extent"):
        Extent(start, count)


def test_an_allocation_knows_its_size_and_shape() -> None:
    allocation = Allocation("a", "c", "h", "p", (Extent(0, 2), Extent(5, 1)))
    assert allocation.pool_mib == 3072
    assert allocation.shape == (2, 1)
