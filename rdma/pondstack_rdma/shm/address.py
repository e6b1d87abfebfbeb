"""The Unix socket of a lender: a path that its predecessor may have left behind."""

import contextlib
import os
import socket
from pathlib import Path

from pondstack.domain.errors import InUse
from pondstack_rdma.errors import RegistrationFailed, TransportGone, TransportTimeout

_BACKLOG = 64


def listen(path: Path) -> socket.socket:
    """Listen on `path`, for this user only; its folder is made where it is missing.

    Raises InUse while another lender does, RegistrationFailed.
    """
    listener = _new()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_dead(path)
        listener.bind(os.fspath(path))
        path.chmod(0o600)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise RegistrationFailed(f"no lender can listen on {path}: {error}; see who owns the folder") from error
    except BaseException:
        listener.close()
        raise
    return listener


def connect(path: str, timeout_seconds: float) -> socket.socket:
    """Connect to the lender at `path`; raises TransportGone. The socket keeps the time-out."""
    link = _new()
    try:
        link.settimeout(timeout_seconds)
        link.connect(path)
    except BlockingIOError as error:  # the queue of a lender that accepts nobody is full
        link.close()
        raise TransportTimeout(f"the lender at {path} does not accept borrowers; see whether it is frozen") from error
    except OSError as error:
        link.close()
        raise TransportGone(f"there is no lender at {path}: {error}; see whether its agent runs") from error
    return link


def _new() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)


def _remove_dead(path: Path) -> None:
    """Remove the socket of a lender that was killed."""
    with contextlib.suppress(FileNotFoundError, ConnectionRefusedError), _new() as probe:
        probe.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            probe.connect(os.fspath(path))
        raise InUse(f"another lender listens on {path}; stop it, or give this one another name")
    path.unlink(missing_ok=True)
