"""What a waker answers: the host's agent over a socket in its folder, and the controllers over the bus."""

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import oslo_messaging

from pondstack.rpc.waker_api import WAKER_VERSION
from pondstack_agent.helper.server import RequestHandler, Verb
from pondstack_agent.helper.unix_socket import listen
from pondstack_agent.power.doorbell import Doorbell
from pondstack_agent.power.program import WAKER
from pondstack_agent.power.transition import PowerTransitions
from pondstack_agent.rpc_errors import answered

_PAUSE_SECONDS = 0.1


class WakerService:
    """Listens in `folder` until `stop`."""

    def __init__(self, folder: Path, transitions: PowerTransitions, doorbell: Doorbell) -> None:
        self._stop = threading.Event()
        self._listener = listen(folder, WAKER.socket)
        verbs: dict[str, Verb] = {"enter": transitions.enter, "told": transitions.told, "arm": doorbell.arm}
        self._handler = RequestHandler(WAKER, verbs)

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


class WakerEndpoint:
    """What controllers call: pondstack.rpc.waker_api on the wire. Waking is harmless, so it takes no epoch."""

    target = oslo_messaging.Target(version=WAKER_VERSION)

    def __init__(self, transitions: PowerTransitions) -> None:
        self._transitions = transitions

    @answered
    def wake(self, _context: Any) -> dict[str, Any]:
        """Have the host wake; answers as told."""
        return self._transitions.wake()

    @answered
    def told(self, _context: Any) -> dict[str, Any]:
        """Return how far the host's newest transition is."""
        return self._transitions.told()
