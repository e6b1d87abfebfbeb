"""The simulation notices when a rule of the design is broken: each variant is caught, and soon."""

import pytest

from tests.sim.histories import assert_caught
from tests.sim.mutants import MUTANTS
from tests.sim.plan import draw
from tests.sim.run import run
from tests.sim.shrink import shrink

WITHIN = 200
"""Histories in which each variant must be caught."""
SHRINK_SECONDS = 300.0
"""It takes two; on however busy a machine it must come to its end."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_variant_is_caught(name: str) -> None:
    assert_caught(MUTANTS[name], draw, WITHIN)


@pytest.mark.parametrize("faults", sorted({variant.faults for variant in MUTANTS.values()} - {()}))
def test_the_whole_code_passes_what_they_fail(faults: tuple[str, ...]) -> None:
    for seed in range(10):
        outcome = run(draw(seed, only=faults))
        assert not outcome.code, outcome.detail


def test_a_failing_history_is_made_shorter() -> None:
    broken = MUTANTS["sanitise_skipped"].broken
    seed = next(seed for seed in range(WITHIN) if run(draw(seed), broken=broken).code)
    outcome = run(draw(seed), broken=broken)
    short = shrink(outcome, lambda history: run(history, broken=broken, tracing=True), SHRINK_SECONDS)
    assert short.code == outcome.code
    assert not short.history.faults
    assert len(short.history.operations) <= 2
    assert any("VIOLATION" in line for line in short.trace)
