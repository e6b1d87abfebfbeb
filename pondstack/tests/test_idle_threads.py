"""Threads of an executor without work sleep, and end with it or with their process all the same."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import futurist
import pytest

from pondstack import idle_threads

DEADLINE_SECONDS = 30.0

PROGRAM = """
import gc
import weakref
import futurist
from pondstack import native_threads
native_threads.use()
kept, dropped = futurist.ThreadPoolExecutor(4), futurist.ThreadPoolExecutor(4)
for executor in (kept, dropped):
    for future in [executor.submit(int) for _ in range(4)]:
        future.result()
gone = weakref.ref(dropped)
del executor, dropped, future
gc.collect()  # it refers to itself
assert gone() is None
print("done")
"""


@pytest.fixture(autouse=True)
def sleeping() -> Iterator[None]:
    undo = idle_threads.let_sleep()
    yield
    undo()


def _executor(threads: int) -> tuple[futurist.ThreadPoolExecutor, list[threading.Thread]]:
    before = set(threading.enumerate())
    executor = futurist.ThreadPoolExecutor(threads)
    for future in [executor.submit(int) for _ in range(threads)]:
        future.result()
    return executor, [thread for thread in threading.enumerate() if thread not in before]


def test_they_sleep_long_while_there_is_nothing_to_do() -> None:
    assert futurist._thread.ThreadWorker.MAX_IDLE_FOR == idle_threads.LOOK_SECONDS


def test_all_end_with_their_executor_and_at_once() -> None:
    executor, threads = _executor(8)
    began = time.monotonic()
    executor.shutdown()
    assert not any(thread.is_alive() for thread in threads)
    assert time.monotonic() - began < idle_threads.LOOK_SECONDS / 2


def test_who_ends_wakes_another_whose_wake_went_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that is not to end yet may take it: here all of them but the last one are lost."""
    executor, threads = _executor(4)
    [queue] = {thread.work_queue for thread in threads}  # type: ignore[attr-defined]
    put, wakes = queue.put, []

    def astray(work: object, *arguments: object, **named: object) -> None:
        wakes.append(work)
        if not isinstance(work, idle_threads._Nothing) or len(wakes) >= len(threads):
            put(work, *arguments, **named)

    monkeypatch.setattr(queue, "put", astray)
    began = time.monotonic()
    executor.shutdown()
    assert not any(thread.is_alive() for thread in threads)
    assert time.monotonic() - began < idle_threads.LOOK_SECONDS / 2


def test_they_still_work_after_they_slept() -> None:
    executor, _ = _executor(2)
    assert executor.submit(lambda: 7).result(DEADLINE_SECONDS) == 7
    executor.shutdown()


def test_a_process_ends_at_once_also_with_threads_whose_executor_is_gone() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.stdout.split() == ["done"], done.stderr
