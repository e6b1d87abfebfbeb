"""Signs calls, and opens their replies: an RPC client of oslo.messaging with the same methods."""

from collections.abc import Callable
from typing import Any

import oslo_messaging

from pondstack.domain import errors
from pondstack.domain.errors import PondError, Refused, StaleMessage
from pondstack.rpc.identity.border import FAILURE, RESULT, Border, Expected
from pondstack.rpc.identity.signature import KEY, Request, plain

TRIES = 3
"""Of a call that was signed before its receiver began, or that a queue kept for long."""
REMOTE = "_Remote"
"""What oslo.messaging adds to the class of an error that a reply carried."""


class SignedClient:
    """Calls of one target. `client`: that of oslo.messaging, or what its prepare() gave."""

    def __init__(self, client: Any, border: Border) -> None:
        self._client = client
        self._border = border

    def prepare(self, **options: Any) -> "SignedClient":
        """Return a client with other options; those of oslo.messaging."""
        return SignedClient(self._client.prepare(**options), self._border)

    def call(self, context: dict[str, Any], method: str, **arguments: Any) -> Any:
        """Call, and return the result. Raises what the endpoint raised, Refused, and what oslo.messaging does."""
        said = plain(arguments)
        for left in reversed(range(TRIES)):
            try:
                return self._once(context, method, said)
            except StaleMessage:
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    def _once(self, context: dict[str, Any], method: str, arguments: dict[str, Any]) -> Any:
        target = self._client.target
        to = f"{target.topic}/{target.server}" if target.server else target.topic
        seal = self._border.sign(Request(to, method, target.version, arguments))
        try:
            answer = self._client.call({**context, KEY: seal.to_wire()}, method, **arguments)
        except Exception as error:
            if self._border.permissive or not came_unsigned(error):
                raise
            unsigned = Refused(f"the answer to {method} of {to} is an error that nobody signed: {error}")
            self._border.note(unsigned)
            raise unsigned from None
        content = self._border.open(seal.nonce, Expected.at(target.topic, target.server), answer)
        if FAILURE in content:
            raise failure_of(content[FAILURE])
        return content.get(RESULT)


def came_unsigned(error: Exception) -> bool:
    """Return whether an error was a reply, and not this process's own finding."""
    return isinstance(error, oslo_messaging.RemoteError) or type(error).__name__.endswith(REMOTE)


def failure_of(told: Any) -> Exception:
    """Return the error that a signed reply tells of: one of ours, or oslo.messaging's RemoteError."""
    name, text = (str(told.get(key, "")) for key in ("kind", "message")) if isinstance(told, dict) else ("", str(told))
    kind: Callable[[str], PondError] | None = vars(errors).get(name)
    if isinstance(kind, type) and issubclass(kind, PondError):
        return kind(text)
    unknown: Exception = oslo_messaging.RemoteError(name, text, [])
    return unknown
