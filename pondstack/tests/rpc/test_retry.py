"""What clients repeat, and for how long; time is played."""

import oslo_messaging
import pytest

from pondstack.domain.errors import AgentUnavailable, Conflict, DeviceFailed, NotLeader, PoolShortage, Unavailable
from pondstack.rpc.retry import RetryingCaller, RetryPolicy, worth_repeating

LOST = oslo_messaging.MessagingTimeout("no answer")


class Server:
    """Answers attempts from a list: an error, or what to return. A lost one takes its whole time-out."""

    def __init__(self, *answers) -> None:
        self.now = 0.0
        self.answers = list(answers)
        self.timeouts: list[float] = []
        self.persisting = RetryingCaller(RetryPolicy(), clock=lambda: self.now, sleep=self.sleep, uniform=max)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def attempt(self, timeout: float):
        self.timeouts.append(timeout)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            self.now += timeout if answer is LOST else 0.001
            raise answer
        return answer

    def call(self, seconds: float = 30.0):
        return self.persisting.call(self.attempt, seconds)


def test_an_answer_is_an_answer() -> None:
    server = Server("yes")
    assert server.call() == "yes"
    assert server.timeouts == [1.0]


def test_what_finds_no_leader_is_repeated_soon() -> None:
    server = Server(NotLeader("stand-by"), Unavailable("no database"), "yes")
    assert server.call() == "yes"
    assert server.now < 0.5


def test_what_is_lost_gets_more_time_each_time() -> None:
    server = Server(LOST, LOST, LOST, "yes")
    assert server.call() == "yes"
    assert server.timeouts == [1.0, 1.5, 2.25, 3.375]


def test_the_deadline_holds_over_all_attempts() -> None:
    server = Server(LOST)
    with pytest.raises(oslo_messaging.MessagingTimeout):
        server.call(10.0)
    assert 9.0 < server.now <= 10.001
    assert sum(server.timeouts) <= 10.001


def test_a_small_budget_is_one_attempt() -> None:
    server = Server(LOST)
    with pytest.raises(oslo_messaging.MessagingTimeout):
        server.call(0.3)
    assert server.timeouts == [0.3]


def test_nobody_leads_for_the_whole_time() -> None:
    server = Server(NotLeader("stand-by"))
    with pytest.raises(NotLeader):
        server.call(5.0)
    assert server.now <= 5.0
    assert len(server.timeouts) < 25  # pauses grow


@pytest.mark.parametrize("verdict", [PoolShortage("full"), Conflict("gone"), DeviceFailed("broken"), ValueError("?")])
def test_a_verdict_is_not_repeated(verdict) -> None:
    server = Server(verdict, "yes")
    with pytest.raises(type(verdict)):
        server.call()
    assert len(server.timeouts) == 1


def test_which_errors_are_worth_it() -> None:
    again = (NotLeader("x"), Unavailable("x"), LOST, oslo_messaging.MessageDeliveryFailure("x"))
    final = (DeviceFailed("x"), AgentUnavailable("x"), oslo_messaging.RemoteError("x"), KeyError("x"))
    assert all(worth_repeating(error) for error in again)
    assert not any(worth_repeating(error) for error in final)
