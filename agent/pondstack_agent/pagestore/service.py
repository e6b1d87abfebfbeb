"""What the process of a page store answers its agent: one JSON object each way per connection, of the same user."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pondstack_agent.helper.server import RequestHandler, Verb
from pondstack_agent.helper.unix_socket import listen
from pondstack_agent.pagestore.program import PAGE_STORE
from pondstack_agent.pagestore.store import PageStore
from pondstack_rdma.acceptor import Server


class StoreService:
    """Listens in `folder` until `stop`; a thread per request, as some wait."""

    def __init__(self, folder: Path, store: PageStore) -> None:
        self._stop = threading.Event()
        verbs: dict[str, Verb] = {
            "view": store.view,
            "arrive": lambda **given: {"indexes": store.leases.arrive(**given)},
            "leave": lambda **given: {"indexes": store.leases.leave(**given)},
            "lost": lambda lender: _nothing(store.leases.lost, lender),
            "flush": lambda seconds: _nothing(store.pages.flush, seconds),
        }
        name = PAGE_STORE.socket
        self._server = Server(listen(folder, name), str(folder / name), RequestHandler(PAGE_STORE, verbs).talk)

    def wait(self) -> None:
        """Wait until the end, then answer nobody any more."""
        self._stop.wait()
        self._server.close()

    def stop(self) -> None:
        """End; for a signal's handler, too."""
        self._stop.set()


def _nothing(work: Callable[..., None], *arguments: Any) -> dict[str, Any]:
    work(*arguments)
    return {}
