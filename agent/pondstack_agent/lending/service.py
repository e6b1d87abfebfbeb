"""What a lender's process answers, one request after the other; it ends when it holds nothing and is told to."""

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from pondstack.domain.errors import InUse, NotFound
from pondstack.domain.lending import LenderKind
from pondstack_agent.helper.server import RequestHandler, Verb
from pondstack_agent.helper.unix_socket import listen
from pondstack_agent.lending.buffer_table import BufferTable
from pondstack_agent.lending.model import Holding, numbered
from pondstack_agent.lending.program import LENDER

_PAUSE_SECONDS = 0.1


class LenderService:
    """Listens in `folder` until `stop` or the verb `end`."""

    def __init__(self, folder: Path, book: BufferTable, incarnation: str, buffer_mib: int) -> None:
        self._book = book
        self._incarnation = incarnation
        self._buffer_mib = buffer_mib
        self._kind = LenderKind.ACTIVE
        self._stop = threading.Event()
        self._listener = listen(folder, LENDER.socket)
        verbs: dict[str, Verb] = {
            "hold": self._hold,
            "become": self._become,
            "register": lambda: {"index": book.register()},
            "export": lambda indexes, borrower, generations=None: book.export(indexes, borrower, numbered(generations)),
            "escrow": lambda indexes, borrower, generations: book.escrow(
                indexes, borrower, numbered(generations) or {}
            ),
            "share": lambda indexes, borrower, generations: book.share(indexes, borrower, numbered(generations) or {}),
            "revoke": lambda indexes, generations=None: {"indexes": book.revoke(indexes, numbered(generations))},
            "withdraw": lambda indexes: {"indexes": book.withdraw(indexes)},
            "end": self._end,
        }
        self._handler = RequestHandler(LENDER, {name: self._of_this_life(verb) for name, verb in verbs.items()})

    def serve(self) -> None:
        """Answer until the end."""
        while not self._stop.is_set():
            try:
                link, _ = self._listener.accept()
            except OSError:  # stopped; or no descriptors are left, and others may end meanwhile
                self._stop.wait(_PAUSE_SECONDS)
                continue
            with link:
                self._handler.talk(link)
        self._listener.close()

    def stop(self) -> None:
        """End after the request under way; for a signal's handler."""
        self._stop.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)

    def _of_this_life(self, verb: Verb) -> Verb:
        """A request is for one life of the memory: the numbers of another one mean other buffers."""

        def checked(*, incarnation: str = "", **arguments: Any) -> dict[str, Any]:
            if incarnation and incarnation != self._incarnation:
                raise NotFound(
                    f"this lender is incarnation {self._incarnation}, not {incarnation}, whose keys are all dead"
                )
            return verb(**arguments)

        return checked

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
