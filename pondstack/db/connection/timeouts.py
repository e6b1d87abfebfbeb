"""How long a client waits for a database server that does not answer, frozen ones included; in seconds, by driver."""

import select
import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for making a connection and for each answer; None waits for ever."""

    connect_seconds: float | None = None
    answer_seconds: float | None = None


def arguments(dialect: str, limits: Limits) -> dict[str, Any]:
    """Return the driver's arguments that make it raise its OperationalError when the time is over."""
    if dialect == "mysql":
        named = {
            "connect_timeout": limits.connect_seconds,
            "read_timeout": limits.answer_seconds,
            "write_timeout": limits.answer_seconds,
        }
        return {name: value for name, value in named.items() if value is not None}
    if dialect == "postgresql":
        return _postgresql(limits)
    return {}


def _postgresql(limits: Limits) -> dict[str, Any]:
    """libpq has a limit for connecting only, so that psycopg2 waits by a function of ours.

    That function is set for the whole process; connections that were not made with these arguments wait as ever.
    """
    from psycopg2 import extensions  # type: ignore[import-untyped]

    class Patient(extensions.connection):  # type: ignore[misc]
        """A connection that knows its limits while it is being made."""

        pondstack_limits = limits

    extensions.set_wait_callback(_wait)
    return {"connection_factory": Patient}


def _wait(connection: Any) -> None:
    """Wait until libpq has what it waits for; psycopg2 closes the connection when this raises."""
    from psycopg2 import OperationalError, extensions

    limits = getattr(connection, "pondstack_limits", Limits())
    made = connection.status in (extensions.STATUS_READY, extensions.STATUS_BEGIN, extensions.STATUS_PREPARED)
    seconds = limits.answer_seconds if made else limits.connect_seconds
    ends = None if seconds is None else time.monotonic() + seconds
    while (state := connection.poll()) != extensions.POLL_OK:
        poller = select.poll()
        poller.register(connection.fileno(), select.POLLIN if state == extensions.POLL_READ else select.POLLOUT)
        left = None if ends is None else (ends - time.monotonic()) * 1000
        if left is not None and (left <= 0 or not poller.poll(left)):
            raise OperationalError(f"the server did not answer within {seconds:g} s")
        if left is None:
            poller.poll()
