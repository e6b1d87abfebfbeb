"""Tell systemd that the agent serves (`Type=notify`), so that nova-compute, which comes after it, finds it ready."""

import os
from collections.abc import Callable, MutableMapping

from oslo_service import systemd

SOCKET = "NOTIFY_SOCKET"


def withheld(environ: MutableMapping[str, str] = os.environ) -> Callable[[], None]:
    """Take systemd's socket out of the environment; returns what tells it once. Outside of systemd it does nothing.

    The parent process of oslo.service would tell as soon as it runs, and the agent recovers memory before it serves.
    """
    socket = environ.pop(SOCKET, None)

    def tell() -> None:
        if socket is not None:
            environ[SOCKET] = socket
            systemd.notify_once()

    return tell
