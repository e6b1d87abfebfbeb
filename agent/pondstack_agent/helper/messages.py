"""Requests of the agent to a helper: one JSON object each way per connection; errors keep their kind."""

import json
import socket
import time
from typing import Any

from pondstack.domain import errors
from pondstack_rdma.tcp import messages


def send(link: socket.socket, message: dict[str, Any], seconds: float) -> None:
    """Send one message; raises OSError."""
    messages.send(link, {}, json.dumps(message).encode(), time.monotonic() + seconds)


def receive(link: socket.socket, seconds: float) -> dict[str, Any]:
    """Receive one message; raises OSError, TimeoutError, ValueError when it is none."""
    _, body = messages.receive(link, time.monotonic() + seconds)
    message = json.loads(body)
    if not isinstance(message, dict):
        raise ValueError("a message is a JSON object")
    return message


def failure(error: errors.PondError) -> dict[str, Any]:
    """Return an error as JSON carries it; one of the transport as what it is of pondstack.domain.errors."""
    return {"error": {"name": type(errors.to_domain(error)).__name__, "text": error.message}}


def failed(answer: dict[str, Any]) -> errors.PondError | None:
    """Return the error that an answer carries, None when it carries none."""
    found = answer.get("error")
    if found is None:
        return None
    told = found if isinstance(found, dict) else {"text": found}
    kind = errors.by_name(str(told.get("name"))) or errors.PondError
    return kind(str(told.get("text")))
