"""Puts the simulation in the place of threads, clocks and random ids, in the code under test and only while it runs."""

import contextlib
import importlib
import logging
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from . import fast_helpers
from .invariants import Violation
from .kernel import Scheduler
from .threads import Threads

PREFIXES = (
    "pondstack.controller.",
    "pondstack.ha.",
    "pondstack_agent.",
    "pondstack.db.",
    "pondstack.ledger.",
    "tests.fixtures.memory",
)
LOUD = ("pondstack.controller.workers", "pondstack.controller.node.node")
"""Where an error that nobody knows is logged and lived with."""

PARTS = ("tests.fixtures.memory.store", "tests.fixtures.memory_device")
"""Their locks are held for a moment in which nobody else gets a turn."""


class Clock:
    """Stands in for the module time."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def time(self) -> float:
        """Return seconds of a wall clock."""
        return 1e6 + self._scheduler.now

    def monotonic(self) -> float:
        """Return seconds."""
        return self._scheduler.now

    def perf_counter_ns(self) -> int:
        """Return nanoseconds."""
        return int(self._scheduler.now * 1e9)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._scheduler.sleep(seconds)


def _modules() -> list[Any]:
    return [
        module
        for name, module in sorted(sys.modules.items())
        if module is not None and name.startswith(PREFIXES) and name not in PARTS
    ]


@contextlib.contextmanager
def patched(scheduler: Scheduler, seed: int, named: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """Patch, and put everything back. `named`: what else to put in the place of which names, by module."""
    rng = Random(f"{seed}:ids")

    def uuid4() -> uuid.UUID:
        return uuid.UUID(int=rng.getrandbits(128), version=4)

    stand_ins = {
        threading: Threads(scheduler),
        time: Clock(scheduler),
        uuid.uuid4: uuid4,
    }
    undo: list[tuple[Any, str, Any]] = []
    for module in _modules():
        for name in ("threading", "time", "uuid4"):
            present = module.__dict__.get(name)
            if present is not None and present in stand_ins:
                undo.append((module, name, present))
                setattr(module, name, stand_ins[present])
    for path, values in named.items():
        module = importlib.import_module(path)
        for name, value in values.items():
            undo.append((module, name, getattr(module, name)))
            setattr(module, name, value)
    undo += _quick()
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        for module, name, present in reversed(undo):
            setattr(module, name, present)


class _LoudLog:
    """A log whose exception() ends the history: the code under test met an error that it does not know."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_arguments, **_named: None

    def exception(self, text: str, *arguments: Any) -> None:
        """Fail."""
        error = sys.exc_info()[1]
        raise Violation("unknown_error", f"{text % arguments}: {type(error).__name__}: {error}") from error


class _QuietLog:
    """A log that costs nothing."""

    def __getattr__(self, _name: str) -> Any:
        return _nothing


def _nothing(*_arguments: Any, **_named: Any) -> None:
    return None


def _quick() -> list[tuple[Any, str, Any]]:
    """Replace what only costs time: logs, and the look for the installed version in each report."""
    undo = []
    for module in _modules():
        if "LOG" in module.__dict__:
            undo.append((module, "LOG", module.LOG))
            module.LOG = _LoudLog() if module.__name__ in LOUD else _QuietLog()
    for path in ("pondstack.rpc.wire", "pondstack.domain.requests", "pondstack_agent.pool.operations"):
        module = importlib.import_module(path)
        undo.append((module, "asdict", module.asdict))
        module.asdict = fast_helpers.asdict  # type: ignore[attr-defined]
    import pondstack_agent.reporter as reporting

    undo.append((reporting, "version", reporting.version))
    reporting.version = lambda _name: "0"  # type: ignore[assignment]
    return undo
