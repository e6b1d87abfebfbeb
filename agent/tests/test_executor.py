"""Recurring work is queued once, and again once it runs; a run that fails is not the last one."""

import pytest

from pondstack_agent.executor import RecurringWork

from .conftest import Later


def test_it_waits_once() -> None:
    later, seen = Later(), []
    work = RecurringWork(later, seen.append)
    work.submit(1)
    work.submit(2)
    later.run()
    assert seen == [1]
    work.submit(3)
    later.run()
    assert seen == [1, 3]


def test_what_is_wanted_while_it_runs_makes_another_run() -> None:
    later, seen = Later(), []

    def turn(number: int) -> None:
        seen.append(number)
        if number < 3:
            work.submit(number + 1)

    work = RecurringWork(later, turn)
    work.submit(1)
    later.run()
    assert seen == [1, 2, 3]


def test_a_run_that_fails_is_not_the_last() -> None:
    later, seen = Later(), []

    def turn(number: int) -> None:
        if number == 1:
            raise OSError("no disk")
        seen.append(number)

    work = RecurringWork(later, turn)
    work.submit(1)
    with pytest.raises(OSError, match="no disk"):
        later.run()
    work.submit(2)
    later.run()
    assert seen == [2]
