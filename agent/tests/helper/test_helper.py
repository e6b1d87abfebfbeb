"""A helper of any kind: errors keep their kind on the way to the agent, and one that is silent is not called gone."""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from pondstack.domain.errors import BadRequest, InUse, PondError, Unavailable
from pondstack_agent.helper import messages
from pondstack_agent.helper.client import HelperClient, HelperGone, HelperSilent
from pondstack_agent.helper.lock import hold_lock
from pondstack_agent.helper.program import Program
from pondstack_agent.helper.server import RequestHandler
from pondstack_agent.helper.unix_socket import listen
from pondstack_rdma.errors import RevokeFailed

PROGRAM = Program("pondstack-test", "test", "no.module", "test", "test.lock", "test.sock", "test.log")
SECONDS = 30.0


@dataclass
class Helper:
    """Answers one request at a time in this process; `hangs_up`: it closes its lock, maybe, and then the link."""

    folder: object
    lock: int
    hangs_up: bool = False
    given: list[dict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.listener = listen(self.folder, PROGRAM.socket)
        self.handler = RequestHandler(PROGRAM, {"note": self.note, "refuse": self.refuse, "fail": self.fail})
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            with link:
                if not self.hangs_up:
                    self.handler.talk(link)

    def note(self, **given: object) -> dict:
        self.given.append(given)
        return {"noted": len(self.given)}

    def refuse(self, code: str) -> dict:
        raise {"in-use": InUse("somebody has it"), "busy": RevokeFailed("slow")}[code]

    def fail(self) -> dict:
        raise ZeroDivisionError("by accident")


@pytest.fixture
def helper(tmp_path) -> Iterator[Helper]:
    folder = tmp_path / ("long" * 40)  # an address of a Unix socket has 107 bytes
    made = Helper(folder, hold_lock(folder / PROGRAM.lock))
    yield made
    made.listener.shutdown(2)
    made.listener.close()


@pytest.fixture
def client(helper) -> HelperClient:
    return HelperClient(PROGRAM, helper.folder, "", SECONDS)


def test_a_verb_gets_its_arguments(helper, client) -> None:
    assert client._ask("note", indexes=[1, 2], lender="host1") == {"noted": 1}
    assert helper.given == [{"indexes": [1, 2], "lender": "host1"}]


@pytest.mark.parametrize(
    ("verb", "arguments", "kind", "text"),
    [
        ("refuse", {"code": "in-use"}, InUse, "somebody has it"),
        ("refuse", {"code": "busy"}, Unavailable, "slow"),  # of the transport: what it is of the domain's errors
        ("refuse", {"colour": "blue"}, BadRequest, "of one version"),
        ("dance", {}, BadRequest, "of one version"),
        (["note"], {}, BadRequest, "of one version"),
        ({}, {}, BadRequest, "of one version"),
        (None, {}, BadRequest, "of one version"),
        ("fail", {}, Unavailable, "by accident"),
    ],
)
def test_an_error_keeps_its_kind(client, verb, arguments, kind, text) -> None:
    with pytest.raises(PondError, match=text) as raised:
        client._ask(verb, **arguments)
    assert type(raised.value) is kind
    assert client._ask("note") == {"noted": 1}


def test_an_error_of_a_name_that_is_none_is_an_error() -> None:
    for answer in ({"error": {"name": "__builtins__", "text": "x"}}, {"error": {"name": ["a"]}}, {"error": 5}):
        assert type(messages.failed(answer)) is PondError
    assert messages.failed({}) is None


@pytest.mark.parametrize(
    "state", ["", "[]", "{}", '{"pid": -1}', '{"pid": 0}', '{"pid": 1}', '{"pid": "7"}', "[" * 9999]
)
def test_nobody_else_is_killed_for_what_a_lock_says(tmp_path, state: str) -> None:
    (tmp_path / PROGRAM.lock).write_text(state)
    with pytest.raises(Unavailable, match=r"test\.lock does not say whose it is"):
        PROGRAM.pid(tmp_path)
    (tmp_path / PROGRAM.lock).write_text('{"pid": 4711, "incarnation": "x"}')
    assert PROGRAM.pid(tmp_path) == 4711


def test_one_that_hangs_up_is_silent_until_its_lock_is_free(helper, client) -> None:
    helper.hangs_up = True
    with pytest.raises(HelperSilent):
        client._ask("note")
    os.close(helper.lock)
    with pytest.raises(HelperGone):
        client._ask("note")
    assert not client.runs


def test_why_one_does_not_start_is_told(client) -> None:
    with pytest.raises(Unavailable, match=r"does not start: .*No module named"):
        client._start("--foreground")
    client._launcher = "/no/such/launcher"
    with pytest.raises(Unavailable, match=r"see \[test\] launcher"):
        client._start()
