"""Lender of shared memory: hands the descriptors of a region to whoever shows a key of it, and is not asked again."""

import os
import socket
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pondstack.domain.errors import PondError
from pondstack_rdma import wire_errors
from pondstack_rdma.acceptor import Server
from pondstack_rdma.keyring import Keyring
from pondstack_rdma.lending import SoftwareLender
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.shm import messages
from pondstack_rdma.shm.address import listen
from pondstack_rdma.shm.control import ControlPage
from pondstack_rdma.shm.memory import SharedMemory

DRIVER = "shm"
_ANSWER_SECONDS = 10.0
"""So long a borrower that takes no answers keeps a thread."""


class ShmLender(SoftwareLender[SharedMemory]):
    """Listens on a Unix socket. Each region is a memfd of its own, each borrower has a control page of its own."""

    def __init__(self, path: Path, keyring: Keyring) -> None:
        super().__init__(DRIVER, str(path), keyring)
        self._path = path
        self._pages: dict[str, ControlPage] = {}
        self._listening = Server(listen(path), str(path), self._serve)

    @property
    def _server(self) -> Server:
        return self._listening

    def _allocate(self, size_bytes: int) -> SharedMemory:
        return SharedMemory(size_bytes)

    def _location(self, key: Key, memory: SharedMemory) -> Mapping[str, int]:
        # A descriptor of this process: whoever may open it by /proc needs no answer.
        return {"fd": memory.fd, "slot": self._pages[key.borrower].slot(key.number)}

    def _key_made(self, key: Key) -> None:
        self._page(key.borrower).add(key.number)

    def _key_ended(self, key: Key) -> None:
        self._pages[key.borrower].end(key.number)

    def _forget(self, borrower: str) -> None:
        page = self._pages.pop(borrower, None)
        if page is not None:
            page.close()

    def close(self) -> None:
        """End all keys, give all memory back, and remove the socket."""
        with self._lock:
            if not self._closed:
                self._path.unlink(missing_ok=True)
        super().close()
        with self._lock:
            while self._pages:
                self._pages.popitem()[1].close()

    def _page(self, borrower: str) -> ControlPage:
        if borrower not in self._pages:
            self._pages[borrower] = ControlPage()
        return self._pages[borrower]

    def _serve(self, link: socket.socket) -> None:
        """Talk with one borrower until it hangs up or talks nonsense."""
        try:
            borrower = ""
            while message := _receive(link, None if borrower else _ANSWER_SECONDS):
                if borrower:
                    self._answer(link, {"id": message.get("id")}, partial(self._open, borrower, message))
                else:
                    borrower = self._answer(link, {}, partial(self._greet, link, message))
                    if not borrower:
                        return
        except (OSError, ValueError):
            return  # it is gone, or no borrower of ours; its own side tells why
        finally:
            self._left(link)

    def _answer(self, link: socket.socket, answer: dict[str, Any], look: Callable[[dict[str, Any]], "_Found"]) -> str:
        """Send what `look` finds, or its refusal; the borrower's name when it was admitted."""
        link.settimeout(_ANSWER_SECONDS)
        try:
            borrower, fd = look(answer)
        except PondError as error:
            messages.send(link, answer | {"error": wire_errors.to_wire(error)})
            return ""
        # Not under the lock: a borrower that takes no answers must not keep the lender from revoking.
        try:
            messages.send(link, answer, (fd,))
        finally:
            os.close(fd)
        return borrower

    def _greet(self, link: socket.socket, message: dict[str, Any], _answer: dict[str, Any]) -> "_Found":
        ticket = Ticket.from_dict(message)
        with self._lock:
            self._check_borrower(ticket.borrower, ticket.secret, link)
            return ticket.borrower, os.dup(self._page(ticket.borrower).fd)

    def _open(self, borrower: str, message: dict[str, Any], answer: dict[str, Any]) -> "_Found":
        key = Key.from_dict(message.get("key"))
        with self._lock:
            memory = self._check(borrower, key)
            answer["slot"] = self._pages[borrower].slot(key.number)
            return borrower, os.dup(memory.fd)


_Found = tuple[str, int]
"""A borrower, and a descriptor for it that has to be closed."""


def _receive(link: socket.socket, seconds: float | None) -> dict[str, Any]:
    link.settimeout(seconds)
    message, fds = messages.receive(link)
    messages.close_all(fds)  # nobody asked for them
    return message
