"""Locks by name."""

import threading
from concurrent.futures import ThreadPoolExecutor

from pondstack_agent.locks import NamedLocks


def test_one_name_excludes_and_another_does_not() -> None:
    locks, running, most = NamedLocks(), [0], [0]
    inside = threading.Barrier(2)

    def count(_number: int) -> None:
        with locks.holding("a"):
            running[0] += 1
            most[0] = max(most[0], running[0])
            running[0] -= 1

    def meet(name: str) -> None:
        with locks.holding(name):
            inside.wait(30)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(count, range(500)))
        list(threads.map(meet, ["a", "b"]))
    assert most == [1]
    assert locks._locks == {}
