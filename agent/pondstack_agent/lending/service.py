"""What a lender's process answers, one request after the other; it ends when it holds nothing and is told to."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pondstack.domain.errors import BadRequest, InUse, NotFound, PondError, Unavailable
from pondstack.domain.lending import LenderKind
from pondstack_agent.lending import messages
from pondstack_agent.lending.buffer_table import BufferTable
from pondstack_agent.lending.model import Holding

LOG = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.1
_TALK_SECONDS = 10.0
"""So long a client that says nothing keeps others waiting."""


class LenderService:
    """Listens in `folder` for its own user, until `stop` or the verb `end`."""

    def __init__(self, folder: Path, book: BufferTable, incarnation: str, buffer_mib: int) -> None:
        self._book = book
        self._incarnation = incarnation
        self._buffer_mib = buffer_mib
        self._kind = LenderKind.ACTIVE
        self._stop = threading.Event()
        self._listener = _listen(folder)
        self._verbs: dict[str, Callable[..., dict[str, Any]]] = {
            "hold": self._hold,
            "become": self._become,
            "register": lambda: {"index": book.register()},
            "export": lambda indexes, borrower, generations=None: book.export(
                indexes, borrower, messages.numbered(generations)
            ),
            "revoke": lambda indexes, generations=None: {
                "indexes": book.revoke(indexes, messages.numbered(generations))
            },
            "withdraw": lambda indexes: {"indexes": book.withdraw(indexes)},
            "end": self._end,
        }

    def serve(self) -> None:
        """Answer until the end."""
        while not self._stop.is_set():
            try:
                link, _ = self._listener.accept()
            except OSError:  # stopped; or no descriptors are left, and others may end meanwhile
                self._stop.wait(_PAUSE_SECONDS)
                continue
            with link, suppress(OSError, ValueError):  # it has gone, or talks nonsense; its own side tells why
                self._talk(link)
        self._listener.close()

    def stop(self) -> None:
        """End after the request under way; for a signal's handler."""
        self._stop.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)

    def _talk(self, link: socket.socket) -> None:
        if messages.user_of(link) not in (os.geteuid(), 0):
            return
        request = messages.receive(link, _TALK_SECONDS)
        try:
            answer = self._answer(request)
        except PondError as error:
            answer = messages.failure(error)
        except Exception as error:  # whatever it is, what is lent lives on
            LOG.exception("The verb of the request %s failed", request)
            answer = messages.failure(Unavailable(f"the lender could not do it: {error!r}; see its log"))
        messages.send(link, answer, _TALK_SECONDS)

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        # A request is for one life of the memory: the numbers of another one mean other buffers.
        wanted = request.pop("incarnation", "")
        if wanted and wanted != self._incarnation:
            raise NotFound(f"this lender is incarnation {self._incarnation}, not {wanted}, whose keys are all dead")
        verb = self._verbs.get(request.pop("verb", ""))
        try:
            if verb is None:
                raise TypeError("no such verb")
            return verb(**request)
        except TypeError as error:
            raise BadRequest(f"the lender does not understand its agent ({error}); are they of one version?") from error

    def _hold(self) -> dict[str, Any]:
        return Holding(self._incarnation, self._kind, self._buffer_mib, self._book.buffers()).to_wire()

    def _become(self, kind: str) -> dict[str, Any]:
        self._kind = LenderKind(kind)
        return {}

    def _end(self) -> dict[str, Any]:
        if self._book.buffers():
            raise InUse("this lender has buffers; withdraw them first")
        self.stop()
        return {}


def _listen(folder: Path) -> socket.socket:
    """Listen in a folder whose lock the caller holds: a socket there is a dead one's."""
    (folder / messages.SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    with messages.address(folder) as path:
        listener.bind(path)
    (folder / messages.SOCKET).chmod(0o600)
    listener.listen()
    return listener
