"""Runs one history and tells how it went."""

import contextlib
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from . import settings
from .consistent import disagreements
from .doubles import controller_doubles
from .invariants import Violation
from .monkeypatch import patched
from .plan import SECONDS, History, Step
from .rack import Rack

MOST_STEPS = 200_000
"""No history needs so many; one that does goes round in circles."""


@dataclass(slots=True)
class Outcome:
    """How a history went. `code` "" means that nothing was wrong."""

    history: Any
    """A tests.sim.plan.History, or of a kind that has a world of its own what is drawn there."""
    code: str = ""
    detail: str = ""
    steps: int = 0
    virtual_seconds: float = 0.0
    acknowledged: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)


def run(
    history: History,
    *,
    tracing: bool = False,
    sql: bool = False,
    broken: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
) -> Outcome:
    """Run a history; `broken` puts a fault into the code under test meanwhile (see mutants)."""
    with broken():
        rack = Rack(history, sql=sql)
        rack.scheduler.tracing = tracing
        with patched(rack.scheduler, history.seed, controller_doubles(rack)):
            outcome = Outcome(history)
            try:
                _live(rack)
            except Violation as violation:
                outcome.code, outcome.detail = violation.code, violation.detail
                rack.scheduler.note(f"VIOLATION {violation}")
            finally:
                rack.scheduler.close()
    outcome.steps = rack.scheduler.steps
    outcome.virtual_seconds = rack.scheduler.now
    outcome.acknowledged = rack.scheduler.acknowledged
    outcome.faults = rack.scheduler.faults
    outcome.trace = rack.scheduler.trace
    return outcome


def _live(rack: Rack) -> None:
    rack.start()
    rack.scheduler.run(lambda: rack.scheduler.steps > MOST_STEPS, SECONDS)
    rack.faults.stop()
    rack.scheduler.note("the faults stop")
    _settle(rack)
    if rack.history.drain:
        for name in list(rack.nova.instances):
            rack.nova.start(Step(rack.scheduler.now, "delete", name))
        if rack.plans is not None:
            rack.plans.drain()
        if rack.lent is not None:
            rack.lent.drain()
        _settle(rack)


def _settle(rack: Rack) -> None:
    """Go on until everything is consistent; raises Violation when that takes too long."""
    seconds = settings.CONSISTENT_SECONDS if rack.plans is None else settings.SLEEPS_END_SECONDS
    deadline = rack.scheduler.now + seconds
    found: list[str] = []
    while rack.scheduler.now < deadline:
        rack.scheduler.run(lambda: rack.scheduler.steps > MOST_STEPS, rack.scheduler.now + 0.5)
        if rack.scheduler.steps > MOST_STEPS:
            raise Violation("endless", f"{MOST_STEPS} steps and no end")
        found = disagreements(rack)
        if not found:
            return
    raise Violation("not_consistent", f"{seconds:.0f} s after the last fault: {'; '.join(found)}")
