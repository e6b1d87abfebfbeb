"""Decisions of a lender as tables."""

import pytest

from pondstack_agent.lending.model import Buffer
from pondstack_agent.lending.plan import choose, lendable_mib, wanted_back_mib
from pondstack_agent.lending.runs import runs


@pytest.mark.parametrize(
    ("available", "reserve", "kept", "promised", "expected"),
    [
        (1000, 100, 0, 0, 896),
        (1000, 100, 50, 0, 832),
        (1000, 100, 0, 128, 768),
        (163, 100, 0, 0, 0),
        (50, 100, 0, 0, 0),
    ],
)
def test_what_is_lendable(available, reserve, kept, promised, expected) -> None:
    assert lendable_mib(available, reserve, kept, promised, 64) == expected


@pytest.mark.parametrize(("left", "expected"), [(200, 192), (63, 0), (-64, 0), (5000, 896)])
def test_what_is_lendable_is_bounded(left: int, expected: int) -> None:
    assert lendable_mib(1000, 100, 0, 0, 64, left) == expected


@pytest.mark.parametrize(
    ("available", "lent", "expected"),
    [(1024, 640, 0), (1023, 8192, 3136), (1023, 640, 640), (4090, 640, 0)],
)
def test_what_is_wanted_back_under_pressure(available, lent, expected) -> None:
    assert wanted_back_mib(available, 4096, 1024, lent, 64) == expected


def test_pressure_above_the_reserve_wants_a_buffer() -> None:
    assert wanted_back_mib(500, 100, 600, 640, 64) == 64


def test_buffers_that_nobody_has_go_first() -> None:
    buffers = [Buffer(0), Buffer(1, "host2", 1), Buffer(2, "host3", 1), Buffer(3)]
    assert choose(buffers, 3) == [3, 0, 2]
    assert choose(buffers, 9) == [3, 0, 2, 1]
    assert choose(buffers, -1) == []


def test_buffers_that_are_alike_are_one_run() -> None:
    buffers = [Buffer(0), Buffer(1), Buffer(3), Buffer(4, "host2", 1), Buffer(5, "host2", 1), Buffer(6, "host2", 2)]
    assert runs(buffers) == [[0, 2, "", 0], [3, 1, "", 0], [4, 2, "host2", 1], [6, 1, "host2", 2]]
    assert runs([]) == []
