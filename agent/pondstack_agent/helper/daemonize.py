"""A process of ours that outlives the agent: it goes into the background once it serves, or says why it does not."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

_READY = b"ready"


class Ready:
    """How a process in the background tells its starter that it serves, or why not. `log`: for what it says then."""

    def __init__(self, descriptor: int, log: Path | None) -> None:
        self._descriptor, self._log = descriptor, log

    def serves(self) -> None:
        """It serves from now on; its starter is let go."""
        if self._log is not None:
            _detach(self._log)
            os.write(self._descriptor, _READY)
            os.close(self._descriptor)
            self._descriptor = sys.stderr.fileno()  # its log from now on

    def failed(self, reason: str) -> None:
        """It ends, for this reason."""
        os.write(self._descriptor, f"{reason}\n".encode())


def run_in_foreground(run: Callable[[Ready], int]) -> int:
    """Run it here; what it says goes to standard error."""
    return run(Ready(sys.stderr.fileno(), None))


def run_in_background(run: Callable[[Ready], int], log: Path) -> int:
    """Run it in a child that lives on; returns 0 once it serves, else 1 with its reason on standard error.

    Call it before the first thread is started.
    """
    reader, writer = os.pipe()
    if child := os.fork():
        os.close(writer)
        return _await(reader, child)
    os.close(reader)
    os.setsid()
    # Not by sys.exit: what the parent has buffered is the parent's.
    os._exit(run(Ready(writer, log)))


def _await(reader: int, child: int) -> int:
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    if said == _READY:
        return 0
    os.waitpid(child, 0)
    sys.stderr.write(said.decode(errors="replace") or "it ended at its start; see its log\n")
    return 1


def _detach(log: Path) -> None:
    """Let go of the starter's descriptors; what goes wrong from here on is in a file."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for handle, number in ((nowhere, 0), (file, 1), (file, 2)):
        os.dup2(handle, number)
    os.close(nowhere)
    os.close(file)
