"""Which servers are reached over RDMA. An offer is asked for in the background, so that no call ever waits for one."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from oslo_messaging import MessagingException, MessagingTimeout

from pondstack.domain.errors import PondError
from pondstack_rdma.messaging.settings import Settings
from pondstack_rdma.rpc.client import RpcClient
from pondstack_rdma.rpc.offer import Offer
from pondstack_rdma.rpc.session import KeyPair

LOG = logging.getLogger(__name__)

ASK_THREADS = 4
"""Offers that are asked for at once; more servers wait for their turn while their calls go over the broker."""

Place = tuple[str | None, str, str | None]
"""Exchange, topic, server."""


class _Way:
    def __init__(self) -> None:
        self.client: RpcClient | None = None
        self.due_seconds = 0.0
        self.asking = False
        self.told = ""
        """What was logged last, so that it is logged once."""


class RdmaClients:
    """`ask` gets a server's offer, for a client's public key, over the broker.

    It raises what the broker does, and the server's errors. `refused` is told of frames that are not a server's.
    """

    def __init__(
        self, ask: Callable[[Any, bytes], Any], settings: Settings, refused: Callable[[PondError], None]
    ) -> None:
        self._ask = ask
        self._refused = refused
        self._settings = settings
        self._lock = threading.Lock()
        self._ways: dict[Place, _Way] = {}
        self._free = ASK_THREADS
        self._closed = False

    def get(self, target: Any) -> RpcClient | None:
        """Return the client of a server that is reached over RDMA; otherwise None, and an attempt may begin."""
        place = (target.exchange, target.topic, target.server)
        now = time.monotonic()
        with self._lock:
            way = self._ways.setdefault(place, _Way())
            if way.client is not None:
                if way.client.usable:
                    return way.client
                way.client.close_when_idle()
                way.client = None
                self._tell(way, target, "Calls to %s go over the broker until they can go over RDMA again")
            if not self._closed and not way.asking and self._free and now >= way.due_seconds:
                way.asking = True
                self._free -= 1
                threading.Thread(target=self._connect, args=(way, target), name="offer of RDMA", daemon=True).start()
        return None

    def close(self) -> None:
        """Hang up on all; who waits for a reply gets AnswerLost."""
        with self._lock:
            self._closed = True
            clients = [way.client for way in self._ways.values() if way.client is not None]
            self._ways.clear()
        for client in clients:
            client.close()

    def _connect(self, way: _Way, target: Any) -> None:
        client: RpcClient | None = None
        text = "Calls to %s go over RDMA"
        try:
            pair = KeyPair()
            offer = Offer.from_dict(self._ask(target, pair.public))
            session = pair.call(offer.public_key, offer.session)
            link = self._settings.transport.connect(offer.ticket, self._settings.access_seconds)
            try:
                client = RpcClient(link, offer, session, self._refused)
            except BaseException:
                link.close()
                raise
        except (PondError, MessagingException, OSError) as error:
            text = f"Calls to %s go over the broker, and not over RDMA: {_reason(error)}"
        with self._lock:
            way.asking = False
            self._free += 1
            way.due_seconds = time.monotonic() + (0.0 if client else self._settings.retry_seconds)
            if not self._closed:
                way.client, client = client, None
                self._tell(way, target, text)
        if client is not None:
            client.close()

    @staticmethod
    def _tell(way: _Way, target: Any, text: str) -> None:
        if way.told != text:
            way.told = text
            LOG.info(text, target.server or target.topic)


def _reason(error: Exception) -> str:
    """Return why in one line that is the same each time, as it is logged when it changes."""
    if isinstance(error, MessagingTimeout):
        return "no server answers on the broker"  # the library's text has the message's own number
    return str(error).partition("\n")[0].replace("%", "%%")
