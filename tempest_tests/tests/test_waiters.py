"""Waits end when the condition holds, and tell what was seen last when it does not."""

from typing import Any

import pytest
from tempest.lib import exceptions

from pondstack_tempest import waiters


class Servers:
    """Nova's servers, one answer after the other; the last one stays."""

    build_timeout = 0.3
    build_interval = 0.01

    def __init__(self, *answers: dict[str, Any] | None) -> None:
        self._answers = list(answers)

    def show_server(self, server: str) -> dict[str, Any]:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            raise exceptions.NotFound(server)
        return {"server": answer}


def _server(status: str, task: str | None = None, **more: Any) -> dict[str, Any]:
    return {"status": status, "OS-EXT-STS:task_state": task, **more}


def test_a_server_is_waited_for_until_it_has_the_status_and_no_task() -> None:
    client = Servers(_server("BUILD", "spawning"), _server("ACTIVE", "rebooting"), _server("ACTIVE", name="right"))
    assert waiters.for_server(client, "one", ["ACTIVE"])["name"] == "right"


def test_a_server_in_error_ends_the_wait_with_its_fault() -> None:
    with pytest.raises(waiters.ServerInError, match="it burns"):
        waiters.for_server(Servers(_server("ERROR", fault={"message": "it burns"})), "one", ["ACTIVE"])


def test_an_error_that_is_waited_for_is_none() -> None:
    assert waiters.for_server(Servers(_server("ERROR")), "one", ["ERROR"])["status"] == "ERROR"


def test_a_late_server_is_told_as_it_was_last() -> None:
    with pytest.raises(exceptions.TimeoutException, match=r"one is BUILD \(task spawning\), not one of ACTIVE"):
        waiters.for_server(Servers(_server("BUILD", "spawning")), "one", ["ACTIVE"])


def test_a_server_is_gone_when_nova_says_so() -> None:
    waiters.for_no_server(Servers(_server("ACTIVE"), None), "one")
    with pytest.raises(exceptions.TimeoutException, match="still there"):
        waiters.for_no_server(Servers(_server("ACTIVE")), "one")
