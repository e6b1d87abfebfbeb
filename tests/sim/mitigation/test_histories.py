"""Histories of mitigations, and broken variants that they catch."""

from collections import Counter

import pytest

from tests.sim.mitigation.mutants import MUTANTS
from tests.sim.mitigation.plan import draw
from tests.sim.mitigation.world import run

HISTORIES = 40
WITHIN = 150
"""Histories in which each variant must be caught."""


def test_no_history_violates_anything() -> None:
    met: Counter[str] = Counter()
    done = 0
    for seed in range(HISTORIES):
        outcome = run(draw(seed))
        assert not outcome.code, f"make sim HISTORIES=1 SEED={seed} KIND=mitigation: {outcome.code}: {outcome.detail}"
        met += outcome.faults
        done += outcome.acknowledged
    assert done > HISTORIES
    for what in (
        "copy begun",
        "migration asked for",
        "domain rewritten",
        "aborted",
        "agent crashed",
        "call comes late",
    ):
        assert met[what], what


SEEDS: tuple[tuple[int, str], ...] = (
    (151, "the server was moved between the looks at Nova and Placement, and the wrong host's memory was claimed"),
    (373, "the server was moved away and came back, and was copied although its claim was a new one"),
    (528, "a copy that had to be done once more was given up after the domain was rewritten"),
)


@pytest.mark.parametrize(("seed", "about"), SEEDS, ids=[str(seed) for seed, _ in SEEDS])
def test_a_history_that_once_went_wrong(seed: int, about: str) -> None:
    outcome = run(draw(seed))
    assert not outcome.code, f"{outcome.detail} (once: {about})"


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_variant_is_caught(name: str) -> None:
    variant = MUTANTS[name]
    for seed in range(WITHIN):
        if run(draw(seed, only=variant.faults), broken=variant.broken).code:
            return
    pytest.fail(f"not caught in {WITHIN} histories: {variant.about}")


def test_the_same_seed_takes_the_same_turns() -> None:
    first, second = (run(draw(7), tracing=True).trace for _ in range(2))
    assert first == second
    assert len(first) > 20
