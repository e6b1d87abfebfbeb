"""One thread, a virtual clock, and tasks that take turns: what runs is the production code, unchanged and synchronous.

A task is a greenlet (the package that SQLAlchemy brings along; production code never imports it): it goes on until it
waits for something, and only then does the clock move. Whatever is random comes from the history's seed, so that the
same history takes the same turns. `Threads` stands in for the module threading in the code under test.
"""

import heapq
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
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


class SimFuture(Future):  # type: ignore[type-arg]
    """A future whose result() gives the turn away."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the answer; raises TimeoutError."""
        deadline = None if timeout is None else self._scheduler.now + timeout
        while not self.done():
            left = None if deadline is None else deadline - self._scheduler.now
            if left is not None and left <= 0:
                raise TimeoutError
            task = self._scheduler.current()
            assert task is not None
            turn = task.turn
            self.add_done_callback(lambda _f, task=task, turn=turn: self._scheduler.wake(task, turn, True))
            self._scheduler.wait(left)
        return super().result(0)


class SimExecutor:
    """Runs what is submitted in a task of the process."""

    def __init__(self, scheduler: Scheduler, process: Process) -> None:
        self._scheduler = scheduler
        self._process = process

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> SimFuture:
        """Start it."""
        future = SimFuture(self._scheduler)

        def run() -> None:
            try:
                answer = work(*arguments, **named)
            except Exception as error:  # noqa: BLE001 (whoever asks for the result gets it)
                future.set_exception(error)
            else:
                future.set_result(answer)

        self._scheduler.spawn(self._process, run)
        return future

    def shutdown(self, wait: bool = True, **_named: Any) -> None:
        """Nothing to end."""


class InlineExecutor:
    """Runs what is submitted at once, in the task that submits it."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        """Run it."""
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments, **named))
        except Exception as error:  # noqa: BLE001 (whoever asks for the result gets it)
            future.set_exception(error)
        return future


class Lock:
    """threading.Lock for tasks."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._owner: Any = None
        self._queue: deque[tuple[Task, int]] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it."""
        task = self._scheduler.current()
        if self._owner is None:
            self._owner = task or True
            return True
        if not blocking:
            return False
        assert task is not None, "outside any task nothing can be waited for"
        deadline = None if timeout < 0 else self._scheduler.now + timeout
        while self._owner is not None:
            self._queue.append((task, task.turn))
            self._scheduler.wait(None if deadline is None else max(0.0, deadline - self._scheduler.now))
            if deadline is not None and self._scheduler.now >= deadline and self._owner is not None:
                return False
        self._owner = task
        return True

    def release(self) -> None:
        """Give it back."""
        self._owner = None
        while self._queue:
            task, turn = self._queue.popleft()
            if task.turn == turn:
                self._scheduler.wake(task, turn, True)
                break

    def locked(self) -> bool:
        """Return whether somebody has it."""
        return self._owner is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()


class RLock(Lock):
    """threading.RLock for tasks."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, once more if it is one's own."""
        task = self._scheduler.current() or True
        if self._owner is task or super().acquire(blocking, timeout):
            self._depth += 1
            return True
        return False

    def release(self) -> None:
        """Give it back once."""
        self._depth -= 1
        if self._depth == 0:
            super().release()


class Condition:
    """threading.Condition for tasks, over a lock that its owner may take again."""

    def __init__(self, scheduler: Scheduler, lock: Any = None) -> None:
        self._scheduler = scheduler
        self._lock = lock or RLock(scheduler)
        self._waiting: list[tuple[Task, int]] = []
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> bool:
        return bool(self._lock.acquire())

    def __exit__(self, *_error: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Give the lock away until somebody notifies."""
        task = self._scheduler.current()
        assert task is not None
        self._waiting.append((task, task.turn))
        self._lock.release()
        try:
            return self._scheduler.wait(timeout) is not None
        finally:
            self._lock.acquire()

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Wait until something holds."""
        deadline = None if timeout is None else self._scheduler.now + timeout
        while not predicate():
            left = None if deadline is None else deadline - self._scheduler.now
            if left is not None and left <= 0:
                break
            self.wait(left)
        return predicate()

    def notify(self, n: int = 1) -> None:
        """Wake some."""
        for _ in range(n):
            if self._waiting:
                task, turn = self._waiting.pop(0)
                self._scheduler.wake(task, turn, True)

    def notify_all(self) -> None:
        """Wake all."""
        self.notify(len(self._waiting))


class Semaphore(Condition):
    """threading.Semaphore and BoundedSemaphore for tasks."""

    def __init__(self, scheduler: Scheduler, value: int = 1) -> None:
        super().__init__(scheduler)
        self._value = value
        self.acquire, self.release = self._take, self._give

    def _take(self, blocking: bool = True, timeout: float | None = None) -> bool:
        with self._lock:
            if not self._value and not (blocking and self.wait_for(lambda: self._value, timeout)):
                return False
            self._value -= 1
            return True

    def _give(self, n: int = 1) -> None:
        with self._lock:
            self._value += n
            self.notify(n)

    def __enter__(self) -> bool:
        return self._take()

    def __exit__(self, *_error: object) -> None:
        self._give()


class Event:
    """threading.Event for tasks."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._set = False
        self._waiting: list[tuple[Task, int]] = []

    def is_set(self) -> bool:
        """Return whether it is set."""
        return self._set

    def set(self) -> None:
        """Wake all that wait."""
        self._set = True
        waiting, self._waiting = self._waiting, []
        for task, turn in waiting:
            self._scheduler.wake(task, turn, True)

    def clear(self) -> None:
        """Unset it."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set."""
        deadline = None if timeout is None else self._scheduler.now + timeout
        while not self._set:
            left = None if deadline is None else deadline - self._scheduler.now
            if left is not None and left <= 0:
                return False
            task = self._scheduler.current()
            assert task is not None
            self._waiting.append((task, task.turn))
            self._scheduler.wait(left)
        return True


class Thread:
    """threading.Thread for tasks: a task of the process that starts it."""

    def __init__(
        self,
        target: Callable[..., Any] | None = None,
        name: str = "",
        daemon: bool = True,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        scheduler: Scheduler,
    ) -> None:
        del daemon
        self.name = name
        self.ident: int | None = None
        self._work = target
        self._arguments, self._named = args, kwargs or {}
        self._scheduler = scheduler
        self._ended = Event(scheduler)
        self._started = False

    def start(self) -> None:
        """Start it."""
        current = self._scheduler.current()
        self._started = True
        self._scheduler.spawn(current.process if current else self._scheduler.world, self._run)

    def _run(self) -> None:
        try:
            assert self._work is not None
            self._work(*self._arguments, **self._named)
        finally:
            self._ended.set()

    def is_alive(self) -> bool:
        """Return whether it runs."""
        return self._started and not self._ended.is_set()

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        self._ended.wait(timeout)


class Threads:
    """Stands in for the module threading."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def Lock(self) -> Lock:
        """Return a lock."""
        return Lock(self._scheduler)

    def RLock(self) -> RLock:
        """Return a lock that its owner may take again."""
        return RLock(self._scheduler)

    def Condition(self, lock: Any = None) -> Condition:
        """Return a condition."""
        return Condition(self._scheduler, lock)

    def Semaphore(self, value: int = 1) -> Semaphore:
        """Return a semaphore."""
        return Semaphore(self._scheduler, value)

    BoundedSemaphore = Semaphore

    def Event(self) -> Event:
        """Return an event."""
        return Event(self._scheduler)

    def current_thread(self) -> Any:
        """Return something that is no Thread of ours: none joins itself."""
        return None

    def Thread(self, *arguments: Any, **named: Any) -> Thread:
        """Return a thread."""
        return Thread(*arguments, scheduler=self._scheduler, **named)
