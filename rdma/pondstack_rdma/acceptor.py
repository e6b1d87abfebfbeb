"""The listening side of a lender in software: a bounded number of links, one thread each."""

import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

MAX_LINKS = 1024
"""So many links at once; whoever comes after them is hung up on. A borrower has one for each consumer of its memory."""

MAX_LINKS_PER_ADDRESS = 256
"""So many of one address, so that one machine alone cannot keep all others out. Unix sockets have no addresses."""

_JOIN_SECONDS = 5.0
_PAUSE_SECONDS = 0.1


class Server:
    """Calls `serve` with each connection, which it closes afterwards. `address` is what borrowers connect to."""

    def __init__(
        self,
        listener: socket.socket,
        address: str,
        serve: Callable[[socket.socket], None],
        max_links: int = MAX_LINKS,
        max_links_per_address: int = MAX_LINKS_PER_ADDRESS,
    ) -> None:
        self.address = address
        self._listener = listener
        self._serve = serve
        self._max_links = max_links
        self._max_links_per_address = max_links_per_address
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._links: dict[socket.socket, threading.Thread] = {}
        self._addresses: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._accept, name=f"lend {address}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hang up on everybody; idempotent, and not for the threads of `serve`."""
        self._stop.set()
        with self._lock:
            links = dict(self._links)
        for opened in (self._listener, *links):
            with suppress(OSError):  # it has hung up first, or was closed before
                opened.shutdown(socket.SHUT_RDWR)
        for thread in (self._thread, *links.values()):
            thread.join(_JOIN_SECONDS)
        self._listener.close()

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                link, peer = self._listener.accept()
            except OSError:  # shut down, or no descriptors left: then others may end meanwhile
                self._stop.wait(_PAUSE_SECONDS)
                continue
            self._start(link, peer[0] if isinstance(peer, tuple) else "")

    def _start(self, link: socket.socket, peer: str) -> None:
        """`peer`: the address of the other side; empty: a Unix socket, whose folder says who may connect."""
        with self._lock:
            full = len(self._links) >= self._max_links
            crowded = bool(peer) and self._addresses[peer] >= self._max_links_per_address
            if self._stop.is_set() or full or crowded:
                link.close()
                return
            self._addresses[peer] += 1
            thread = threading.Thread(target=self._run, args=(link, peer), name=f"link of {self.address}", daemon=True)
            self._links[link] = thread
            thread.start()

    def _run(self, link: socket.socket, peer: str) -> None:
        try:
            self._serve(link)
        finally:
            with self._lock:
                del self._links[link]
                self._addresses[peer] -= 1
                if not self._addresses[peer]:
                    del self._addresses[peer]
            link.close()
