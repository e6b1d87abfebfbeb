"""Composes all answers to one trace."""

from collections.abc import Callable
from pathlib import Path

from pondstack.planner.answers.figures import Answers
from pondstack.planner.settings import Settings
from pondstack.planner.trace import Trace

Progress = Callable[[int, int], None]
"""Is told how many of how many parts are done."""


def answer(
    trace: Trace, settings: Settings, *, jobs: int = 1, cache: Path | None = None, progress: Progress | None = None
) -> Answers:
    """Return all answers; parts that `cache` (a folder) has from an interrupted run are taken from there.

    `jobs`: processes at once. Raises ValueError for a trace without servers, or a cloud that the settings cannot make.
    """
    raise NotImplementedError
