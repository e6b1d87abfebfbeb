"""Waits for conditions, each with a deadline; what was seen last is in the error."""

from collections.abc import Callable, Collection
from typing import Any

from tempest.lib import exceptions
from tempest.lib.common.utils import test_utils


class ServerInError(exceptions.TempestException):
    """A server ended in ERROR instead of what was waited for."""

    message = "Server %(server)s ended in ERROR: %(fault)s"


def until(condition: Callable[[], Any], seconds: float, interval: float, otherwise: Callable[[], str]) -> None:
    """Wait until `condition` holds; TimeoutException with what `otherwise` says when it does not in time."""
    if not test_utils.call_until_true(lambda: bool(condition()), seconds, interval) and not condition():
        raise exceptions.TimeoutException(otherwise())


def for_server(client: Any, server: str, statuses: Collection[str]) -> dict[str, Any]:
    """Wait until a server has one of these statuses and no task; ServerInError when it ends in ERROR instead.

    `client`: a ServersClient; its build_timeout and build_interval are taken.
    """
    seen: dict[str, Any] = {}

    def settled() -> bool:
        seen.update(client.show_server(server)["server"])
        task = seen.get("OS-EXT-STS:task_state")
        if seen["status"] == "ERROR" and "ERROR" not in statuses and not task:
            raise ServerInError(server=server, fault=seen.get("fault", {}).get("message"))
        return seen["status"] in statuses and not task

    def late() -> str:
        task = seen.get("OS-EXT-STS:task_state")
        return f"{server} is {seen.get('status')} (task {task}), not one of {', '.join(statuses)}"

    until(settled, client.build_timeout, client.build_interval, late)
    return seen


def for_no_server(client: Any, server: str) -> None:
    """Wait until a server is gone."""

    def gone() -> bool:
        try:
            client.show_server(server)
        except exceptions.NotFound:
            return True
        return False

    until(gone, client.build_timeout, client.build_interval, lambda: f"{server} is still there")
