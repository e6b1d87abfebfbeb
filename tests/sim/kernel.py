"""One thread, a virtual clock, and tasks that take turns: what runs is the production code, unchanged and synchronous.

A task is a greenlet (the package that SQLAlchemy brings along; production code never imports it): it goes on until it
waits for something, and only then does the clock move. Whatever is random comes from the history's seed, so that the
same history takes the same turns. What stands in for the module threading is in threads.py.
"""

import heapq
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet


class ProcessDied(GreenletExit):
    """Thrown into every task of a process that was killed; no code catches it."""


class Process:
    """Something that is killed, paused and cut off as a whole. `traps`: faults that wait for a moment in its code."""

    def __init__(self, name: str, rng: Random) -> None:
        self.name = name
        self.alive = True
        self.paused_until = 0.0
        self.skew_seconds = 0.0
        self.rng = rng
        self.traps: list[Any] = []
        self.tasks: dict[Task, None] = {}
        self.on_death: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"process {self.name}"


class Task:
    """One line of execution of a process."""

    __slots__ = ("fiber", "name", "process", "turn", "value")

    def __init__(self, process: Process, name: str, fiber: greenlet) -> None:
        self.process = process
        self.name = name
        self.fiber = fiber
        self.turn = 0
        self.value: Any = None


class Scheduler:
    """The clock and whose turn it is. `world`: the process of what belongs to none, never killed."""

    def __init__(self, seed: int | str) -> None:
        self.now = 0.0
        self.steps = 0
        self.rng = Random(f"{seed}:turns")
        self._seed = seed
        self._heap: list[tuple[float, int, Any, int]] = []
        self._count = 0
        self._tasks: dict[Task, None] = {}
        self._hub = getcurrent()
        self._running: Task | None = None
        self.failure: BaseException | None = None
        self.world = self.process("world")
        self.trace: list[str] = []
        self.tracing = False
        self.faults: Counter[str] = Counter()
        self.acknowledged = 0

    def process(self, name: str) -> Process:
        """Make a process."""
        return Process(name, Random(f"{self._seed}:{name}"))

    def note(self, text: str) -> None:
        """Add a line to the trace, when one is kept."""
        if self.tracing:
            task = self.current()
            self.trace.append(f"{self.now:9.4f} {task.process.name if task else '-':<8} {text}")

    # Tasks

    def current(self) -> Task | None:
        """Return the task that runs now, None in the hub."""
        return self._running

    def spawn(self, process: Process, work: Callable[..., Any], *arguments: Any, after: float = 0.0) -> Task:
        """Start a task after `after` seconds."""

        def run() -> None:
            try:
                work(*arguments)
            except GreenletExit:
                pass
            except BaseException as error:  # noqa: BLE001 (a bug in the code under test or in here: the run ends)
                self.failure = self.failure or error
            finally:
                process.tasks.pop(task, None)
                self._tasks.pop(task, None)

        task = Task(process, getattr(work, "__qualname__", "task"), greenlet(run, self._hub))
        self._tasks[task] = None
        process.tasks[task] = None
        self._push(self.now + after, task, task.turn)
        return task

    def call_at(self, moment: float, work: Callable[[], None]) -> None:
        """Have the hub call something that does not wait."""
        self._push(max(moment, self.now), work, 0)

    def _push(self, moment: float, what: Any, turn: int) -> None:
        self._count += 1
        heapq.heappush(self._heap, (moment, self._count, what, turn))

    def run(self, until: Callable[[], bool], deadline: float) -> bool:
        """Give turns until `until()` holds (looked at between turns), the clock passes `deadline`, or something fails.

        Returns whether `until()` held.
        """
        while self._heap and self.failure is None:
            if until():
                return True
            moment, _, what, turn = heapq.heappop(self._heap)
            if moment > deadline:
                self._push(moment, what, turn)
                self.now = deadline
                return until()
            self.now = max(self.now, moment)
            if isinstance(what, Task):
                self._resume(what, turn)
            else:
                what()
        if self.failure is not None:
            raise self.failure
        return until()

    def _resume(self, task: Task, turn: int) -> None:
        if task.turn != turn or task not in task.process.tasks:
            return
        process = task.process
        if not process.alive:
            task.turn += 1
            self._running = task
            task.fiber.throw(ProcessDied)
            self._running = None
            process.tasks.pop(task, None)
            self._tasks.pop(task, None)
            return
        if process.paused_until > self.now:
            self._push(process.paused_until, task, turn)
            return
        self.steps += 1
        task.turn += 1
        self._running = task
        task.fiber.switch()
        self._running = None

    def wait(self, timeout: float | None = None) -> Any:
        """Give the turn away until wake() or the time-out; returns what wake() gave, None after the time-out."""
        task = self._running
        assert task is not None, "outside any task nothing can be waited for"
        if not task.process.alive:
            raise ProcessDied
        task.value = None
        if timeout is not None:
            self._push(self.now + timeout, task, task.turn)
        self._hub.switch()
        if not task.process.alive:
            raise ProcessDied
        return task.value

    def wake(self, task: Task, turn: int, value: Any, after: float = 0.0) -> None:
        """End a task's wait that began at its turn `turn`; too late is nothing."""
        if task.turn == turn:
            if after:
                self.call_at(self.now + after, lambda: self.wake(task, turn, value))
                return
            task.value = value
            self._push(self.now, task, turn)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.wait(seconds)

    def kill(self, process: Process) -> None:
        """End a process at once: nothing of it runs any more, not even in a task that calls this."""
        if not process.alive:
            return
        process.alive = False
        for task in list(process.tasks):
            if task is not self._running:
                self._push(self.now, task, task.turn)
        for callback in process.on_death:
            callback()

    def close(self) -> None:
        """End all tasks, so that nothing is left of this history."""
        for task in list(self._tasks):
            task.process.alive = False
            self._running = task
            if task.fiber:
                task.fiber.throw(ProcessDied)
        self._running = None
        self._tasks.clear()
        self._heap.clear()
