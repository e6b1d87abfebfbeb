"""A few histories with the real SQL ledger, the journal's follower included, instead of the one in memory."""

import pytest

from tests.sim.mutants import MUTANTS
from tests.sim.plan import draw
from tests.sim.run import run

SEEDS = (1, 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sql_ledger_violates_nothing(seed: int) -> None:
    outcome = run(draw(seed), sql=True)
    assert not outcome.code, outcome.detail
    assert outcome.steps > 300


def test_a_missing_fence_in_sql_is_caught() -> None:
    broken = MUTANTS["ledger_without_fence"].broken
    codes = [run(draw(seed), sql=True, broken=broken).code for seed in (0, 4)]
    assert "old_epoch_wrote" in codes
