"""Steps that run as soon as what they need is done, in parallel, with their progress shown."""

import shutil
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pondstack_rack.layout import RackError

WORKERS = 12
REFRESH_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Step:
    """One piece of work. `once` names steps that a later run skips when they were finished."""

    name: str
    run: Callable[[], object]
    needs: tuple[str, ...] = ()
    once: bool = False
    log: Path | None = None


class Progress:
    """Prints one line for each step that took more than a blink; on a terminal also what runs at the moment."""

    def __init__(self, write: Callable[[str], None], terminal: TextIO | None = None) -> None:
        self._write = write
        self._terminal = terminal
        self._start = time.monotonic()
        self._lock = threading.Lock()

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._start

    def say(self, text: str) -> None:
        """Print one line behind the elapsed seconds."""
        with self._lock:
            self._overwrite("")
            self._write(f"{self.elapsed_seconds:6.1f} s  {text}")

    def show(self, running: Iterable[str]) -> None:
        """Show the steps under way in a line that the next one replaces; nothing where there is no terminal."""
        with self._lock:
            names = ", ".join(running)
            self._overwrite(f"{self.elapsed_seconds:6.1f} s  ... {names}" if names else "")

    def _overwrite(self, text: str) -> None:
        if self._terminal is not None:
            width = shutil.get_terminal_size().columns - 1
            self._terminal.write(f"\r\x1b[K{text[:width]}")
            self._terminal.flush()


def run_steps(steps: Iterable[Step], done: Path, progress: Progress) -> None:
    """Run all steps, each after its needs; RackError names the first that failed and its log."""
    waiting = {step.name: step for step in steps}
    missing = {need for step in waiting.values() for need in step.needs} - set(waiting)
    if missing:
        raise RackError(f"steps need unknown steps: {', '.join(sorted(missing))}")
    finished: set[str] = set()
    running: dict[Future[None], Step] = {}
    failure: RackError | None = None
    with ThreadPoolExecutor(WORKERS, thread_name_prefix="step") as pool:
        while running or (waiting and failure is None):
            if failure is None:
                for step in [s for s in waiting.values() if finished.issuperset(s.needs)]:
                    running[pool.submit(_run, waiting.pop(step.name), done, progress)] = step
            if not running:
                raise RackError(f"steps need each other: {', '.join(waiting)}")
            progress.show(step.name for step in running.values())
            for future in wait(running, REFRESH_SECONDS, FIRST_COMPLETED).done:
                step = running.pop(future)
                error = future.exception()
                if error is None:
                    finished.add(step.name)
                elif failure is None:
                    progress.say(f"{step.name}  FAILED")
                    failure = _failed(step, error)
    progress.show(())
    if failure is not None:
        raise failure


def _run(step: Step, done: Path, progress: Progress) -> None:
    marker = done / step.name.replace(" ", "-")
    if step.once and marker.exists():
        return
    begun = time.monotonic()
    step.run()
    took = time.monotonic() - begun
    if step.once:
        marker.touch()
    if took > 0.2:
        progress.say(f"{step.name}  ({took:.1f} s)")


def _failed(step: Step, error: BaseException) -> RackError:
    log = f"\n  log: {step.log}" if step.log and str(step.log) not in str(error) else ""
    failure = RackError(f"step '{step.name}' failed: {error}{log}")
    failure.__cause__ = error
    return failure
