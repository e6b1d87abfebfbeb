"""A call ends for its caller when its time is over, whatever becomes of it."""

import threading

import pytest

from pondstack.rpc.bounded import BoundedCalls, CallOverdue, TooManyCalls, through

SECONDS = 30.0


@pytest.fixture
def back():
    """The broker is back; set at the end, so that no thread stays."""
    event = threading.Event()
    yield event
    event.set()


def hang(calls: BoundedCalls, back: threading.Event) -> None:
    with pytest.raises(CallOverdue):
        calls.call(0.01, lambda: back.wait(SECONDS))


def test_an_answer_and_an_error_come_through() -> None:
    calls = BoundedCalls(1)
    assert calls.call(SECONDS, lambda: 1) == 1
    with pytest.raises(KeyError, match="mine"):
        calls.call(SECONDS, lambda: {}["mine"])


def test_an_error_of_the_call_is_not_taken_for_a_late_one() -> None:
    def late() -> None:
        raise TimeoutError("a socket's")

    with pytest.raises(TimeoutError, match="a socket's"):
        BoundedCalls(1).call(SECONDS, late)


def test_calls_that_hang_are_counted_and_more_are_not_made(back) -> None:
    calls, made = BoundedCalls(2), []
    for _ in range(2):
        hang(calls, back)
    with pytest.raises(TooManyCalls):
        calls.call(SECONDS, lambda: made.append(True))
    assert not made


def test_a_call_that_ended_late_makes_room(back) -> None:
    calls = BoundedCalls(1, "late-test-call")
    hang(calls, back)
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "late-test-call"]
    back.set()
    thread.join(SECONDS)
    assert calls.call(SECONDS, lambda: True)


def test_its_thread_does_not_keep_the_process(back) -> None:
    hang(BoundedCalls(1, "hanging-test-call"), back)
    assert [thread.daemon for thread in threading.enumerate() if thread.name == "hanging-test-call"] == [True]


def test_through_makes_each_call_of_a_client_by_the_function() -> None:
    class Client:
        def add(self, one: int, *, two: int) -> int:
            return one + two

    names = []

    def run(name, call):
        names.append(name)
        return call() * 10

    client = through(Client(), run)
    assert client.add(1, two=2) == 30
    assert names == ["add"]
    with pytest.raises(AttributeError):
        client.subtract(1)
