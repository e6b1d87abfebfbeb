"""How an offer crosses the broker: with or without proof of who the other side is.

The bus of pondstack's services has identities (pondstack.rpc.identity), which this package knows nothing of.
"""

import logging
from collections.abc import Callable
from typing import Any, Protocol

from pondstack.domain.errors import PondError

LOG = logging.getLogger(__name__)


class Introducer(Protocol):
    """Signs requests for offers and offers, and judges those of others."""

    def ask(self, client: Any, method: str, arguments: dict[str, Any]) -> Any:
        """Call by a client that has `target` and `call` of oslo.messaging's; raises Refused, and what `call` does."""

    def answer(self, target: Any, incoming: Any, make: Callable[[Any], Any]) -> Any:
        """Return the reply to a request of a server's target: what `make` returns for its arguments.

        Raises its PondError, or oslo.messaging's ExpectedException with one.
        """

    def note(self, error: PondError) -> None:
        """Log and count what was refused."""


class UnsignedIntroducer:
    """Knows nobody, as on a bus without identities."""

    def ask(self, client: Any, method: str, arguments: dict[str, Any]) -> Any:
        """Call."""
        return client.call({}, method, **arguments)

    def answer(self, _target: Any, incoming: Any, make: Callable[[Any], Any]) -> Any:
        """Make the reply, whoever asks."""
        return make(incoming.message.get("args"))

    def note(self, error: PondError) -> None:
        """Log it."""
        LOG.warning("Refused: %s", error.message)
