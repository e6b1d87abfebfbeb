"""Waiting: a deadline holds while the machine runs, and moves on while it stands still."""

from pondstack_rack.wait import Deadline, wait_until


class Clock:
    """Stands still for `stall` seconds at each pause."""

    def __init__(self, stall: float) -> None:
        self.now, self.stall = 0.0, stall

    def __call__(self) -> float:
        return self.now


def paused(deadline: Deadline, clock: Clock, monkeypatch) -> None:
    monkeypatch.setattr(
        deadline._event, "wait", lambda seconds: setattr(clock, "now", clock.now + seconds + clock.stall)
    )
    deadline.pause(0.1)


def test_it_is_over_in_time(monkeypatch) -> None:
    clock = Clock(stall=0.0)
    deadline = Deadline(1.0, clock)
    for _ in range(11):
        assert not deadline.over or clock.now > 0.99
        paused(deadline, clock, monkeypatch)
    assert deadline.over


def test_a_stall_moves_it(monkeypatch) -> None:
    clock = Clock(stall=30.0)
    deadline = Deadline(1.0, clock)
    paused(deadline, clock, monkeypatch)
    assert not deadline.over
    clock.now += 1.0
    assert deadline.over


def test_what_holds_at_once_needs_no_time() -> None:
    assert wait_until(lambda: True, 0.0)
    assert not wait_until(lambda: False, 0.0)
