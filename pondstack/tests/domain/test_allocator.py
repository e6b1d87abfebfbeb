"""The allocator: best fit single extent first, else the fewest, or exactly a shape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondstack.domain.allocator import choose_extents, largest_extent
from pondstack.domain.errors import PoolFragmented, PoolShortage
from pondstack.domain.model import Extent, extents_of, indexes_of

FREE = st.sets(st.integers(0, 40), min_size=1)


def test_takes_the_tightest_single_run():
    assert choose_extents([0, 1, 2, 5, 6, 9], 2) == (Extent(5, 2),)


def test_takes_the_fewest_extents_when_no_run_is_long_enough():
    assert choose_extents([0, 2, 3, 4, 8, 9, 12], 5) == (Extent(2, 3), Extent(8, 2))


def test_keeps_the_order_of_a_shape():
    assert choose_extents([0, 4, 5, 6], 4, (1, 3)) == (Extent(0, 1), Extent(4, 3))


def test_goes_back_when_the_tightest_run_is_a_dead_end():
    # A 3 in the run of 4 would leave no two places for a 2: the run of 6 takes both 3s.
    free = [0, 1, 2, 3, 10, 11, 12, 13, 14, 15]
    chosen = choose_extents(free, 10, (3, 2, 3, 2))
    assert [extent.count for extent in chosen] == [3, 2, 3, 2]
    assert sorted(indexes_of(chosen)) == free


def test_tells_shortage_from_fragmentation():
    with pytest.raises(PoolShortage, match="3 slices are wanted and 2 are free"):
        choose_extents([0, 2], 3)
    with pytest.raises(PoolFragmented, match=r"shape \[2\]"):
        choose_extents([0, 2], 2, (2,))


@pytest.mark.parametrize(("count", "shape"), [(0, None), (3, (1, 1)), (1, (1, 0))])
def test_refuses_nonsense(count, shape):
    with pytest.raises(ValueError, match="no such request"):
        choose_extents([0, 1, 2, 3], count, shape)


@given(FREE, st.data())
def test_takes_only_free_slices_and_the_fewest_extents(free, data):
    count = data.draw(st.integers(1, len(free)))
    chosen = choose_extents(free, count)
    indexes = indexes_of(chosen)
    assert len(indexes) == len(set(indexes)) == count
    assert set(indexes) <= free
    lengths = sorted((run.count for run in extents_of(free)), reverse=True)
    fewest = next(number for number in range(1, len(lengths) + 1) if sum(lengths[:number]) >= count)
    assert len(chosen) == fewest


@given(FREE, st.data())
def test_a_shape_that_was_cut_from_the_free_slices_always_fits(free, data):
    pieces = []
    for run in extents_of(free):
        size = data.draw(st.integers(0, run.count))
        if size:
            first = data.draw(st.integers(1, size))
            pieces.extend(part for part in (first, size - first) if part)
    if not pieces:
        return
    shape = data.draw(st.permutations(pieces))
    chosen = choose_extents(free, sum(shape), shape)
    assert tuple(extent.count for extent in chosen) == tuple(shape)
    indexes = indexes_of(chosen)
    assert len(indexes) == len(set(indexes))
    assert set(indexes) <= free


@given(FREE)
def test_largest_extent_is_what_one_extent_can_take(free):
    size = largest_extent(free)
    assert len(choose_extents(free, size)) == 1
    if size < len(free):
        assert len(choose_extents(free, size + 1)) > 1


def test_no_free_slices_have_no_extent():
    assert largest_extent([]) == 0
