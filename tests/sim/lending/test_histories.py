"""Histories of lent memory, and broken variants that they catch."""

from collections import Counter

import pytest

from tests.sim.lending.mutants import MUTANTS
from tests.sim.lending.plan import KINDS, draw
from tests.sim.report import story
from tests.sim.run import run
from tests.sim.shrink import shrink

HISTORIES = 24
CHUNK = 12
WITHIN = 150
"""Histories in which each variant must be caught."""


@pytest.mark.parametrize("first", range(0, HISTORIES, CHUNK))
def test_no_history_violates_anything(first: int) -> None:
    faults: Counter[str] = Counter()
    acknowledged = 0
    for seed in range(first, first + CHUNK):
        outcome = run(draw(seed))
        if outcome.code:
            pytest.fail(story(outcome, shrink(outcome, lambda history: run(history, tracing=True))))
        faults += outcome.faults
        acknowledged += outcome.acknowledged
    assert acknowledged > CHUNK
    assert len(faults) > len(KINDS) / 2
    assert faults["zombie slept"]
    assert faults["keys ended in part"]


@pytest.mark.parametrize("seed", [3371, 3563])
def test_what_was_taken_back_before_it_was_acknowledged_is_not_used(seed: int) -> None:
    """Both were violations while an acknowledgement named the allocation only."""
    assert not run(draw(seed)).code


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_variant_is_caught(name: str) -> None:
    variant = MUTANTS[name]
    for seed in range(WITHIN):
        if code := run(draw(seed, only=variant.faults), broken=variant.broken).code:
            assert code != "unknown_error", f"{name} does not fit the code any more: it breaks its own history"
            return
    pytest.fail(f"{name} was not caught in {WITHIN} histories: {variant.about}")


def test_the_same_seed_takes_the_same_turns() -> None:
    first, second = (run(draw(7), tracing=True).trace for _ in range(2))
    assert first == second
    assert len(first) > 20
