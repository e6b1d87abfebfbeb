"""What tests of all kinds of histories do with them: run some, and see that a broken variant is caught."""

from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from .mutant import Mutant
from .plan import History
from .report import story
from .run import run
from .shrink import shrink

Draw = Callable[..., History]


def run_all(draw: Draw, seeds: Iterable[int]) -> tuple[Counter[str], int]:
    """Run histories, none of which may violate anything; returns the faults they met, and what was acknowledged."""
    faults: Counter[str] = Counter()
    acknowledged = 0
    for seed in seeds:
        outcome = run(draw(seed))
        if outcome.code:
            pytest.fail(story(outcome, shrink(outcome, lambda history: run(history, tracing=True))))
        faults += outcome.faults
        acknowledged += outcome.acknowledged
    return faults, acknowledged


def assert_caught(variant: Mutant, draw: Draw, within: int) -> None:
    """See that one of the first `within` histories catches a variant."""
    for seed in range(within):
        if code := run(draw(seed, only=variant.faults), broken=variant.broken).code:
            assert code != "unknown_error", "it does not fit the code any more: it breaks its own history"
            return
    pytest.fail(f"not caught in {within} histories: {variant.about}")
