"""The controller's threads: woken, surviving what they do not know, ending when another controller leads."""

import threading

from pondstack.controller.workers import WakeableWorker
from pondstack.domain.errors import NotLeader, Unavailable


def run(errors):
    """Run a task that raises each of `errors` in turn; return the thread and an event that follows the last one."""
    over = threading.Event()
    waiting = iter(errors)

    def task():
        error = next(waiting, None)
        if error is None:
            over.set()
            return
        background.wake()
        raise error

    background = WakeableWorker("test", task)
    background.start()
    return background, over


def test_it_goes_on_after_errors_known_and_unknown():
    background, over = run([Unavailable("no answer"), ZeroDivisionError("a bug")])
    assert over.wait(10)
    over.clear()
    background.wake()
    assert over.wait(10)
    background.stop()
    assert background.stopping
    assert not background._thread.is_alive()


def test_it_ends_when_another_controller_leads():
    background, over = run([NotLeader("epoch 2")])
    background._thread.join(10)
    assert not background._thread.is_alive()
    assert not over.is_set()


def test_wakes_during_a_run_are_one_more_run():
    started, go_on = threading.Event(), threading.Event()
    runs = []

    def task():
        runs.append(1)
        started.set()
        assert go_on.wait(10)

    background = WakeableWorker("test", task)
    background.start()
    assert started.wait(10)
    started.clear()
    for _ in range(5):
        background.wake()
    go_on.set()
    assert started.wait(10)
    background.stop()
    assert len(runs) == 2


def test_the_first_run_is_at_once_and_each_later_one_waits_for_more_wakes():
    ran = threading.Event()
    background = WakeableWorker("test", ran.set, settle_seconds=3600)
    background.start()
    assert ran.wait(10)
    ran.clear()
    background.wake()
    assert not ran.wait(0.2)
    background.stop(10)
    assert not background._thread.is_alive()
    assert not ran.is_set()


def test_what_is_woken_while_it_settles_makes_one_run():
    runs, ran = [], threading.Event()

    def task():
        runs.append(1)
        ran.set()

    background = WakeableWorker("test", task, settle_seconds=0.2)
    background.start()
    assert ran.wait(10)
    ran.clear()
    for _ in range(5):
        background.wake()
    assert ran.wait(10)
    background.stop(10)
    assert len(runs) == 2
