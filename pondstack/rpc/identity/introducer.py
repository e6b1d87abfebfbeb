"""Offers of calls over RDMA, signed like all messages: each end knows whose public key it agrees on a session with."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import oslo_messaging

from pondstack.domain.errors import PondError
from pondstack.rpc.identity.border import Border
from pondstack.rpc.identity.client import SignedClient
from pondstack.rpc.identity.server import SignedDispatcher


class SignedIntroducer:
    """What the driver of calls over RDMA asks of a border (pondstack_rdma.messaging.introducer)."""

    def __init__(self, border: Border) -> None:
        self._border = border

    def ask(self, client: Any, method: str, arguments: dict[str, Any]) -> Any:
        """Call a server signed, and open its signed reply; raises Refused, and what the server raised."""
        return SignedClient(client, self._border).call({}, method, **arguments)

    def answer(self, target: Any, incoming: Any, make: Callable[[Any], Any]) -> Any:
        """Return the signed reply to a request, once it was judged; raises ExpectedException for an unsigned one."""
        made = oslo_messaging.expected_exceptions(PondError)(make)

        def dispatch(incoming: Any) -> Any:
            return made(incoming.message.get("args"))

        return SignedDispatcher(SimpleNamespace(dispatch=dispatch), self._border, target).dispatch(incoming)

    def note(self, error: PondError) -> None:
        """Log and count a frame that was refused."""
        self._border.note(error)
