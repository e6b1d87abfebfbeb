"""A few histories with the real SQL ledger, the journal's follower included, instead of the one in memory."""

from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from pondstack.db.models import Leadership
from pondstack.db.read.rack import read_rack
from pondstack.db.store import pools, slices
from tests.sim.invariants import Watch
from tests.sim.lending import plan as lending
from tests.sim.lending.mutants import MUTANTS as LENDING_MUTANTS
from tests.sim.mutants import MUTANTS
from tests.sim.plan import draw
from tests.sim.run import run
from tests.sim.sql import WatchedDatabase

SEEDS = (1, 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sql_ledger_violates_nothing(seed: int) -> None:
    outcome = run(draw(seed), sql=True)
    assert not outcome.code, outcome.detail
    assert outcome.steps > 300


def test_a_missing_fence_in_sql_is_caught() -> None:
    broken = MUTANTS["ledger_without_fence"].broken
    codes = [run(draw(seed), sql=True, broken=broken).code for seed in (1, 12)]
    assert "old_epoch_wrote" in codes


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sql_ledger_violates_nothing_of_lent_memory(seed: int) -> None:
    outcome = run(lending.draw(seed), sql=True)
    assert not outcome.code, outcome.detail
    assert outcome.acknowledged


def test_a_buffer_that_is_free_too_soon_in_sql_is_caught() -> None:
    """The watch of lent memory sees what SQL commits."""
    broken = LENDING_MUTANTS["free_before_keys_are_dead"].broken
    codes = [run(lending.draw(seed), sql=True, broken=broken).code for seed in (0, 1)]
    assert "key_outlived" in codes, codes


def test_what_is_rolled_back_is_neither_kept_nor_shown() -> None:
    shown: list[Any] = []
    watch = Watch()
    watch.ledger_changed = shown.append  # type: ignore[method-assign]
    database = WatchedDatabase(lambda: 1e6, watch)

    def work(session: Session) -> None:
        pools.add(session, "p", "p", 1024, {"name": "p", "driver": "memory", "address": {}, "slices_total": 2})
        slices.add(session, "p", range(2))
        if not shown:
            shown.append("asked")
            raise KeyError

    with pytest.raises(KeyError):
        database.write(work)
    assert database.read(read_rack).pools == {}
    assert shown == ["asked"]
    database.write(work)
    assert [len(view.slices) for view in shown[1:]] == [2]


def test_no_history_sees_another_ones_rows() -> None:
    first = WatchedDatabase(lambda: 1e6, Watch())
    first.write(lambda session: session.execute(update(Leadership).values(epoch=7)))
    assert (first.leading, WatchedDatabase(lambda: 1e6, Watch()).leading) == (7, 0)
