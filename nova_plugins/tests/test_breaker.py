"""The circuit breaker."""

from pondstack_nova.breaker import FAILURES_TO_OPEN, Breaker


class Clock:
    """Time that only moves by hand, in seconds."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_opens_after_failures_in_a_row_and_tries_again_one_at_a_time() -> None:
    """Open: nobody is admitted until the wait is over, then one."""
    clock = Clock()
    breaker = Breaker(clock, lambda: 5.0)
    for _ in range(FAILURES_TO_OPEN):
        assert breaker.admit()
        breaker.failed()
    assert not breaker.admit()
    clock.now += 5
    assert breaker.admit()
    assert not breaker.admit()
    breaker.failed()
    clock.now += 4.9
    assert not breaker.admit()
    clock.now += 0.1
    assert breaker.admit()
    breaker.succeeded()
    assert breaker.admit()
    assert breaker.admit()


def test_a_success_forgets_earlier_failures() -> None:
    """Only failures in a row open it."""
    breaker = Breaker(Clock(), lambda: 5.0)
    for _ in range(FAILURES_TO_OPEN * 2):
        breaker.failed()
        breaker.succeeded()
    assert breaker.admit()
