"""The budgeted client: the caller waits for its budget and no longer, whatever the bus does."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import oslo_messaging
import pytest

from pondstack.domain import errors
from pondstack.rpc.wire import SplitAnswer
from pondstack_nova import controller_client
from pondstack_nova.breaker import FAILURES_TO_OPEN

ANSWER = SplitAnswer(3072, 1024, "fixed", 1.0, "", 1024)


class FakeAPI:
    """A ControllerAPI whose get_split does what a test says."""

    def __init__(self, behave: Callable[[], SplitAnswer]) -> None:
        self._behave = behave
        self.calls = 0

    def get_split(self, *, features: dict[str, Any], timeout_seconds: float) -> SplitAnswer:  # noqa: ARG002
        self.calls += 1
        return self._behave()


@pytest.fixture
def blocked() -> Iterator[threading.Event]:
    """An event that a hanging bus waits for; set at the end, so that no thread stays."""
    event = threading.Event()
    yield event
    event.set()


def raising(error: Exception) -> Callable[[], SplitAnswer]:
    """Behave by raising."""

    def behave() -> SplitAnswer:
        raise error

    return behave


def make(behave: Callable[[], SplitAnswer]) -> tuple[controller_client.BudgetedController, FakeAPI]:
    """Return a client over a fake API."""
    api = FakeAPI(behave)
    return controller_client.BudgetedController(lambda: api), api  # type: ignore[arg-type,return-value]


def test_an_answer_comes_back() -> None:
    """The plain case."""
    assert make(lambda: ANSWER)[0].get_split({}, 60.0) == ANSWER


def test_a_hanging_bus_costs_the_budget_only(blocked: threading.Event) -> None:
    """oslo.messaging blocks on a dead broker; we do not."""
    ended = []
    controller, _ = make(lambda: ended.append(blocked.wait(60)) or ANSWER)  # type: ignore[func-returns-value]
    with pytest.raises(controller_client.NoAnswer) as failure:
        controller.get_split({}, 0.05)
    assert not ended, "the bus hangs still"
    assert failure.value.reason == "timeout"


def test_hanging_calls_do_not_pile_up(blocked: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all threads taken, a call is refused at once; so it is while the breaker is open."""
    controller, api = make(lambda: blocked.wait(60) and ANSWER)
    monkeypatch.setattr(controller._breaker, "admit", lambda: True)
    reasons = []
    for _ in range(controller_client.CALLS_AT_ONCE + 5):
        with pytest.raises(controller_client.NoAnswer) as failure:
            controller.get_split({}, 0.001)
        reasons.append(failure.value.reason)
    assert reasons[-1] == "busy"
    assert api.calls == controller_client.CALLS_AT_ONCE
    monkeypatch.undo()
    with pytest.raises(controller_client.NoAnswer) as failure:
        controller.get_split({}, 0.001)
    assert failure.value.reason == "breaker_open"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (oslo_messaging.MessagingTimeout("late"), "timeout"),
        (oslo_messaging.MessageDeliveryFailure("broker gone"), "transport"),
        (ConnectionRefusedError("broker gone"), "transport"),
        (oslo_messaging.RemoteError("TypeError", "bug"), "remote_error"),
        (errors.NotLeader("not me"), "unavailable"),
        (KeyError("an answer of another version"), "transport"),
    ],
)
def test_every_failure_is_no_answer(error: Exception, reason: str) -> None:
    """Whatever goes wrong with the bus, the reason is a stable word; the breaker opens after three in a row."""
    controller, api = make(raising(error))
    for _ in range(FAILURES_TO_OPEN):
        with pytest.raises(controller_client.NoAnswer) as failure:
            controller.get_split({}, 60.0)
        assert failure.value.reason == reason
    with pytest.raises(controller_client.NoAnswer) as failure:
        controller.get_split({}, 60.0)
    assert failure.value.reason == "breaker_open"
    assert api.calls == FAILURES_TO_OPEN


@pytest.mark.parametrize("error", [errors.PoolShortage("short"), errors.BadSpec("wrong"), errors.NotFound("gone")])
def test_verdicts_of_the_controller_come_through(error: errors.PondError) -> None:
    """A refusal is an answer: it neither falls back nor opens the breaker."""
    controller, api = make(raising(error))
    for _ in range(FAILURES_TO_OPEN + 1):
        with pytest.raises(type(error)):
            controller.get_split({}, 60.0)
    assert api.calls == FAILURES_TO_OPEN + 1


def test_one_client_per_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forked child makes its own: threads and sockets of the parent are of no use to it."""
    controller_client.reset()
    parent = controller_client.controller()
    assert controller_client.controller() is parent
    monkeypatch.setattr(controller_client.os, "getpid", lambda: -1)
    assert controller_client.controller() is not parent
    controller_client.reset()


def test_a_dead_broker_costs_the_budget_and_does_not_hold_the_exit() -> None:
    """A process whose broker is away gets its verdict in time, by itself, and can end."""
    program = """
import socket, sys, time
from oslo_service import backend
backend.init_backend(backend.BackendType.THREADING)
from nova.conf import CONF
from pondstack_nova import controller_client
with socket.socket() as nobody:
    nobody.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
    CONF([], default_config_files=[])
    CONF.set_override("transport_url", f"rabbit://u:p@127.0.0.1:{nobody.getsockname()[1]}/", group="pondstack")
    started = time.monotonic()
    for _ in range(2):
        try:
            controller_client.controller().get_split({}, 0.2)
        except controller_client.NoAnswer as failure:
            print(failure.reason, time.monotonic() - started < 30)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.split() == ["timeout", "True"] * 2
