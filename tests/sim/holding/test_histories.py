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
    assert met["host fenced and back"] or met["host removed"]


CLAIM_IN_THE_WAY = 770777
"""Two slices were wanted, then none, then one: the claim of the second was still there, and no room for the first."""


def test_a_claim_that_is_wanted_no_more_does_not_keep_another_out() -> None:
    outcome = run(draw(CLAIM_IN_THE_WAY, hosts_go=False))
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
