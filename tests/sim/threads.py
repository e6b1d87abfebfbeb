"""What stands in for threads, locks, futures and executors: tasks of the scheduler that take turns."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from .kernel import Process, Scheduler, Task


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

    def map(self, work: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        """Do it with each of some items, and yield the answers in order."""
        futures = [self.submit(work, item) for item in items]
        return (future.result() for future in futures)

    def shutdown(self, wait: bool = True, **_named: Any) -> None:
        """Nothing to end."""


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
