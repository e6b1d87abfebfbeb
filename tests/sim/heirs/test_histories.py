"""Guests that move live with their slices, under faults: none of their memory is lost, zeroed or another's."""

import pytest

from tests.sim.heirs.mutants import MUTANTS
from tests.sim.heirs.plan import draw
from tests.sim.histories import assert_caught, run_all

HISTORIES, WITHIN = 30, 60


def test_no_history_violates_anything() -> None:
    faults, acknowledged = run_all(draw, range(HISTORIES))
    assert faults
    assert acknowledged > HISTORIES


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_variant_is_caught(name: str) -> None:
    assert_caught(MUTANTS[name], draw, WITHIN)
