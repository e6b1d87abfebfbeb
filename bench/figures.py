"""Small statistics, and a progress display that knows whether somebody watches."""

import statistics
import sys
import time
from collections.abc import Sequence

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile: a value that was measured. NaN when there is none."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank) - 1, 0)]


def spread(values: Sequence[float], digits: int) -> str:
    """Return `median (least - most)`."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} - {max(values):.{digits}f})"


class Meter:
    """Progress of a run: a bar on a terminal, else a line every `every_seconds`."""

    def __init__(self, what: str, total: int, every_seconds: float = 10.0) -> None:
        self._what, self._total, self._every = what, total, every_seconds
        self._printed = self._begun = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> "Meter":
        if sys.stdout.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, TextColumn("{task.fields[note]}"))
            self._bar.add_task(self._what, total=self._total, note="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def show(self, done: int, note: str) -> None:
        """Tell how many are done, and a word on the state."""
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=done, note=note)
            return
        now = time.monotonic()
        if now - self._printed >= self._every:
            self._printed = now
            print(f"  {now - self._begun:6.0f} s  {self._what} {done}/{self._total}  {note}", flush=True)
