"""A request over RDMA as oslo.messaging's servers take it."""

import logging
import sys
from typing import Any

from oslo_messaging._drivers import base

from pondstack.domain.errors import BadRequest, PondError
from pondstack_rdma.messaging import messages
from pondstack_rdma.rpc.connection import Request

LOG = logging.getLogger(__name__)


class RdmaIncoming(base.RpcIncomingMessage):  # type: ignore[misc]
    """Raises ValueError for a request that is none."""

    def __init__(self, request: Request) -> None:
        context, message, monitor_seconds = messages.unpack_request(request.payload)
        super().__init__(context, message)
        self.client_timeout = monitor_seconds
        self._request = request

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        """Have the client fetch the reply; one that is too long is an error for it."""
        answer(self._request, messages.pack_reply(reply, failure))

    def requeue(self) -> None:
        """Never called: the driver has no such feature."""
        raise NotImplementedError

    def heartbeat(self) -> None:
        """Show the client that the call is carried out still."""
        try:
            self._request.beat()
        except PondError as error:
            LOG.debug("No sign for a client of a server that has ended: %s", error)


def answer(request: Request, data: bytes) -> None:
    """Reply; what fails is the client's to notice, and is logged."""
    try:
        try:
            request.reply(data)
        except BadRequest:
            request.reply(messages.pack_reply(None, sys.exc_info()))
    except PondError as error:
        LOG.warning("A reply over RDMA is lost, as the server has ended: %s", error)
