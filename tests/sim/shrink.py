"""Makes a failing history shorter: leaves out operations and faults one by one while it still fails the same way."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from .plan import History
from .run import Outcome


def shrink(outcome: Outcome, run: Callable[[History], Outcome], real_seconds: float = 30.0) -> Outcome:
    """Return the outcome of the shortest failing history found in `real_seconds`; `run` runs one and traces it."""
    best = outcome
    ends = time.monotonic() + real_seconds
    shorter = True
    while shorter:
        shorter = False
        for candidate in _shorter(best.history):
            if time.monotonic() > ends:
                return run(best.history)
            found = run(candidate)
            if found.code == outcome.code:
                best, shorter = found, True
                break
    return run(best.history)


def _shorter(history: History) -> Iterator[History]:
    """Yield the history with less in it, the most at once first."""
    for name in ("faults", "operations"):
        steps = getattr(history, name)
        for size in (len(steps) // 2, 1):
            for start in range(0, len(steps), size) if size else ():
                yield replace(history, **{name: steps[:start] + steps[start + size :]})
    if history.drain:
        yield replace(history, drain=False)
