"""Takes a server's requests from the broker, and from memory that clients write; offers that memory over the broker."""

import logging
import sys
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from oslo_messaging._drivers import base
from oslo_messaging.rpc.dispatcher import ExpectedException

from pondstack.domain.errors import BadRequest, InUse, PondError, Unavailable
from pondstack_rdma.base import Lender
from pondstack_rdma.messaging import messages
from pondstack_rdma.messaging.incoming import RdmaIncoming, answer
from pondstack_rdma.messaging.introducer import Introducer
from pondstack_rdma.messaging.settings import Settings
from pondstack_rdma.rpc.connection import Request
from pondstack_rdma.rpc.server import RpcServer

LOG = logging.getLogger(__name__)

SPARE_NAMES = 3


def lender_name(target: Any) -> str:
    """Return the name of a server's lender: the same after a restart, short enough for the path of a socket."""
    words = "\0".join(str(word) for word in (target.exchange, target.topic, target.server))
    return f"rpc-{blake2b(words.encode(), digest_size=8).hexdigest()}"


class RdmaListener(base.Listener):  # type: ignore[misc]
    """Wraps the broker's listener. Without memory, or without its transport, a server has the broker's alone."""

    def __init__(self, inner: Any, target: Any, settings: Settings, introducer: Introducer) -> None:
        super().__init__(inner.batch_size, inner.batch_timeout, inner.prefetch_size)
        self._inner = inner
        self._target = target
        self._settings = settings
        self._introducer = introducer
        self._server: RpcServer | None = None

    def start(self, on_incoming_callback: Callable[[list[Any]], None]) -> None:
        """Take requests from both."""
        super().start(on_incoming_callback)
        try:
            self._server = RpcServer(
                self._lender(), self._requested, self._settings.layout, self._settings.terms, self._introducer.note
            )
        except PondError as error:
            LOG.warning("Calls to %s come over the broker only: %s", self._target.topic, error)
        self._inner.start(self._from_broker)

    def stop(self) -> None:
        """Take none any more, from either; replies go out still."""
        if self._server is not None:
            self._server.stop()
        self._inner.stop()
        super().stop()

    def cleanup(self) -> None:
        """Give everything back; clients over RDMA see it at their next look."""
        if self._server is not None:
            self._server.close()
        self._inner.cleanup()

    def _lender(self) -> Lender:
        """Start a lender. A server that listens again may have its former self still ending: it has a name to spare."""
        name = lender_name(self._target)
        for spare in range(SPARE_NAMES):
            try:
                return self._settings.transport.lend(f"{name}-{spare}")
            except InUse as error:
                LOG.debug("Another name for the memory of %s: %s", self._target.topic, error)
        return self._settings.transport.lend(name)

    def _requested(self, request: Request) -> None:
        try:
            incoming = RdmaIncoming(request)
        except ValueError:
            answer(request, messages.pack_reply(None, sys.exc_info()))
            return
        self.on_incoming_callback([incoming])

    def _from_broker(self, incoming: list[Any]) -> None:
        others = []
        for item in incoming:
            if messages.is_offer_request(item.message):
                self._offer(item)
            else:
                others.append(item)
        if others:
            self.on_incoming_callback(others)

    def _offer(self, incoming: Any) -> None:
        incoming.acknowledge()
        try:
            incoming.reply(self._introducer.answer(self._target, incoming, self._made_offer))
        except ExpectedException as expected:
            incoming.reply(failure=expected.exc_info)
        except PondError:
            incoming.reply(failure=sys.exc_info())

    def _made_offer(self, arguments: Any) -> dict[str, Any]:
        asked = messages.OfferRequest.from_args(arguments)
        own = self._settings.transport.characteristics.driver
        if asked.driver != own:
            raise BadRequest(
                f"[rpc] transport is {own} at the server and {asked.driver} at the client; make them the same"
            )
        if self._server is None:
            raise Unavailable("the server has no memory for calls; its log tells why")
        return self._server.offer(asked.public_key).to_dict()
