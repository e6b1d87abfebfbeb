"""What the process of a page store answers its agent: one JSON object each way per connection, of the same user."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pondstack.domain.errors import BadRequest, PondError, Unavailable
from pondstack_agent.lending import messages
from pondstack_agent.pagestore.exporter import listen
from pondstack_agent.pagestore.store import PageStore
from pondstack_rdma.acceptor import Server

LOG = logging.getLogger(__name__)

SOCKET = "store.sock"
_TALK_SECONDS = 10.0


class StoreService:
    """Listens in `folder` until `stop`."""

    def __init__(self, folder: Path, store: PageStore) -> None:
        self._stop = threading.Event()
        self._verbs: dict[str, Callable[..., dict[str, Any]]] = {
            "view": store.view,
            "arrive": lambda **given: {"indexes": store.leases.arrive(**given)},
            "leave": lambda **given: {"indexes": store.leases.leave(**given)},
            "lost": lambda lender: _nothing(store.leases.lost, lender),
            "flush": lambda seconds: _nothing(store.pages.flush, seconds),
        }
        self._server = Server(listen(folder, SOCKET), str(folder / SOCKET), self._talk)

    def wait(self) -> None:
        """Wait until the end, then answer nobody any more."""
        self._stop.wait()
        self._server.close()

    def stop(self) -> None:
        """End; for a signal's handler, too."""
        self._stop.set()

    def _talk(self, link: socket.socket) -> None:
        with suppress(OSError, ValueError):  # it has gone, or talks nonsense; its own side tells why
            if messages.user_of(link) not in (os.geteuid(), 0):
                return
            request = messages.receive(link, _TALK_SECONDS)
            messages.send(link, self._answer(request), _TALK_SECONDS)

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request.pop("verb", "")
        verb = self._verbs.get(name)
        try:
            if verb is None:
                raise BadRequest(f"a page store has no verb {name!r}; are it and its agent of one version?")
            return verb(**request)
        except PondError as error:
            return messages.failure(error)
        except TypeError as error:
            return messages.failure(BadRequest(f"the page store does not understand its agent: {error}"))
        except Exception as error:  # whatever it is, the pages live on
            LOG.exception("The verb %s failed", name)
            return messages.failure(Unavailable(f"the page store could not do it: {error!r}; see its log"))


def _nothing(work: Callable[..., None], *arguments: Any) -> dict[str, Any]:
    work(*arguments)
    return {}
