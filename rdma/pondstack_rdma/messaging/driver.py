"""The driver `pond` of oslo.messaging. A URL pond+rabbit://... is the broker's, with calls over RDMA where it can be.

Calls that wait for a reply go over RDMA to servers that offer it; all else goes over the broker: casts, fanout, servers
without RDMA, and calls that are known not to have been carried out over RDMA.
"""

import time
from typing import Any

import oslo_messaging
from oslo_messaging._drivers import base

from pondstack_rdma.errors import AnswerLost, RequestNotSent
from pondstack_rdma.messaging import messages
from pondstack_rdma.messaging.clients import RdmaClients
from pondstack_rdma.messaging.introducer import Introducer, UnsignedIntroducer
from pondstack_rdma.messaging.listener import RdmaListener
from pondstack_rdma.messaging.settings import Settings
from pondstack_rdma.rpc.client import RpcClient

PREFIX = "pond+"
BROKER_ONLY = frozenset({"ping"})
"""Methods that are asked to see whether the broker is reached (pondstack.controller.node.broker_probe)."""
ASK_SECONDS = 5.0
DEFAULT_SECONDS = 60.0


class PondDriver(base.BaseDriver):  # type: ignore[misc]
    """Owns a driver of the broker."""

    def __init__(
        self,
        conf: Any,
        url: Any,
        default_exchange: str | None = None,
        allowed_remote_exmods: list[str] | None = None,
    ) -> None:
        super().__init__(conf, url, default_exchange, allowed_remote_exmods)
        self._settings = Settings.from_conf(conf)
        broker = oslo_messaging.get_rpc_transport(conf, str(url).removeprefix(PREFIX), allowed_remote_exmods)
        self._broker = broker._driver
        self.introducer: Introducer = UnsignedIntroducer()
        """Who signs offers; to be set before the first call and the first server, where the bus has identities."""
        self._ways = RdmaClients(self._ask, self._settings, lambda error: self.introducer.note(error))
        self.answered = 0
        """Calls that were answered over RDMA, with a result or an error; not exact with many threads."""

    def require_features(self, requeue: bool = False) -> None:
        """Raise NotImplementedError for what the broker, or this, cannot do."""
        super().require_features(requeue)
        self._broker.require_features(requeue)

    def send(
        self,
        target: Any,
        ctxt: dict[str, Any],
        message: dict[str, Any],
        wait_for_reply: bool | None = None,
        timeout: float | None = None,
        call_monitor_timeout: int | None = None,
        retry: int | None = None,
        transport_options: Any = None,
    ) -> Any:
        """Send; a call's result. Raises the server's error, MessagingTimeout when nobody knows."""
        ends = time.monotonic() + (timeout or DEFAULT_SECONDS)
        over_broker = not wait_for_reply or target.fanout or message.get("method") in BROKER_ONLY
        client = None if over_broker else self._ways.get(target)
        if client is not None:
            try:
                return self._call(client, ctxt, message, ends - time.monotonic(), call_monitor_timeout)
            except RequestNotSent:
                # Nothing was carried out, so that this does not do it twice. RdmaClients logs it.
                self._ways.get(target)
                timeout = max(ends - time.monotonic(), 0.001)
        return self._broker.send(
            target,
            ctxt,
            message,
            wait_for_reply=wait_for_reply,
            timeout=timeout,
            call_monitor_timeout=call_monitor_timeout,
            retry=retry,
            transport_options=transport_options,
        )

    def _call(
        self, client: RpcClient, context: dict[str, Any], message: dict[str, Any], seconds: float, monitor: int | None
    ) -> Any:
        request = messages.pack_request(context, message, monitor)
        try:
            reply = client.call(request, seconds, monitor)
        except AnswerLost as error:
            raise oslo_messaging.MessagingTimeout(f"no answer over RDMA: {error.message}") from error
        self.answered += 1
        return messages.unpack_reply(reply, self._allowed_remote_exmods)

    def _ask(self, target: Any, public_key: bytes) -> Any:
        request = messages.OfferRequest(self._settings.transport.characteristics.driver, public_key)
        asked = target(version=messages.OFFER_VERSION)
        return self.introducer.ask(_OfferClient(self._broker, asked), messages.OFFER_METHOD, request.to_args())

    def send_notification(
        self, target: Any, ctxt: dict[str, Any], message: dict[str, Any], version: float, retry: int | None = None
    ) -> None:
        """Notify over the broker."""
        self._broker.send_notification(target, ctxt, message, version, retry)

    def listen(self, target: Any, batch_size: int, batch_timeout: float | None) -> RdmaListener:
        """Return what a server hears with."""
        return RdmaListener(
            self._broker.listen(target, batch_size, batch_timeout), target, self._settings, self.introducer
        )

    def listen_for_notifications(
        self, targets_and_priorities: Any, pool: str | None, batch_size: int, batch_timeout: float | None
    ) -> Any:
        """Return the broker's listener."""
        return self._broker.listen_for_notifications(targets_and_priorities, pool, batch_size, batch_timeout)

    def cleanup(self) -> None:
        """Hang up on all servers and on the broker."""
        self._ways.close()
        self._broker.cleanup()


class _OfferClient:
    """Asks one server over the broker, as a client of oslo.messaging would."""

    def __init__(self, broker: Any, target: Any) -> None:
        self.target = target
        self._broker = broker

    def call(self, context: dict[str, Any], method: str, **arguments: Any) -> Any:
        """Return the answer; raises the server's error, and what the broker does."""
        message = {"method": method, "version": self.target.version, "args": arguments}
        return self._broker.send(self.target, context, message, wait_for_reply=True, timeout=ASK_SECONDS, retry=1)
