"""Histories of hosts that hold slices for themselves, and broken variants that they catch."""

import pytest

from tests.sim.histories import assert_caught, run_all
from tests.sim.holding.mutants import MUTANTS
from tests.sim.holding.plan import draw
from tests.sim.run import run

HISTORIES = 24
CHUNK = 12
WITHIN = 100
"""Histories in which each variant must be caught."""


@pytest.mark.parametrize("first", range(0, HISTORIES, CHUNK))
def test_no_history_violates_anything(first: int) -> None:
    met, _ = run_all(draw, range(first, first + CHUNK))
    assert met["host slices wanted"]
    assert met["claim of a host dropped"]


LOST_ANSWER = 770777
"""A host took a slice offline for a leader that had been deposed meanwhile: its answer was all that told of it."""


def test_a_release_that_only_a_deposed_leader_heard_of_is_told_again() -> None:
    outcome = run(draw(LOST_ANSWER))
    assert not outcome.code, outcome.detail


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_variant_is_caught(name: str) -> None:
    assert_caught(MUTANTS[name], draw, WITHIN)


def test_the_sql_ledger_violates_nothing() -> None:
    outcome = run(draw(2), sql=True)
    assert not outcome.code, outcome.detail


def test_the_same_seed_takes_the_same_turns() -> None:
    first, second = (run(draw(7), tracing=True).trace for _ in range(2))
    assert first == second
    assert len(first) > 20
