"""A helper's own process: it takes its folder's lock, and goes into the background once it serves, or says why not."""

import argparse
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oslo_privsep import capabilities

from pondstack import core_dumps
from pondstack.domain.errors import PondError
from pondstack_agent.helper import memory_lock
from pondstack_agent.helper.lock import hold_lock, write_state
from pondstack_agent.helper.program import Program
from pondstack_agent.privilege import abilities

LOG = logging.getLogger(__name__)

_READY = b"ready"


class Ready:
    """How a helper tells its starter that it serves, or why not. `log`: for what it says after that."""

    def __init__(self, lock: int, descriptor: int, log: Path | None) -> None:
        self._lock, self._descriptor, self._log = lock, descriptor, log
        self.concern = ""
        """What its log is to tell once it serves."""
        # Before anything that may take long: whoever ends it must not read the number of a former process.
        write_state(lock)

    def serves(self, **state: Any) -> None:
        """It serves from now on; its starter is let go. `state`: what the lock's file tells beside its process id."""
        write_state(self._lock, **state)
        if self._log is not None:
            _detach(self._log)
            os.write(self._descriptor, _READY)
            os.close(self._descriptor)
            self._descriptor = sys.stderr.fileno()  # its log from now on
        if self.concern:
            LOG.warning("%s", self.concern)

    def failed(self, reason: str) -> None:
        """It ends, for this reason."""
        os.write(self._descriptor, f"{reason}\n".encode())


def parser_of(program: Program, description: str) -> argparse.ArgumentParser:
    """Return a parser of what every helper is told."""
    parser = argparse.ArgumentParser(prog=program.name, description=description.partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="where its files are; no other process has it")
    parser.add_argument("--foreground", action="store_true", help="stay in the foreground, for a unit of systemd")
    return parser


def run_helper(program: Program, arguments: argparse.Namespace, serve: Callable[[Ready], None]) -> int:
    """Hold a folder and serve, in the background unless told otherwise; returns the exit code.

    0 once it serves, in the background, or when it has ended; else 1, with the reason on standard error. Call it before
    the first thread is started.
    """
    folder: Path = arguments.folder
    try:
        lock = hold_lock(folder / program.lock)
    except OSError as error:
        print(f"{program.name}: {folder} is another {program.title}'s, or no folder of ours: {error}", file=sys.stderr)
        return 1
    if arguments.foreground:
        return _run(program, serve, Ready(lock, sys.stderr.fileno(), None))
    write_state(lock)
    reader, writer = os.pipe()
    if child := os.fork():
        os.close(writer)
        return _await(reader, child)
    os.close(reader)
    os.setsid()
    # Not by sys.exit: what the parent has buffered is the parent's.
    os._exit(_run(program, serve, Ready(lock, writer, folder / program.log)))


def _run(program: Program, serve: Callable[[Ready], None], ready: Ready) -> int:
    try:
        core_dumps.forbid()
        # Its folder, sockets and mirror are its user's; of root's abilities it has the one to keep memory in RAM.
        abilities.keep({capabilities.CAP_IPC_LOCK, *program.abilities})
        ready.concern = memory_lock.lock()
        serve(ready)
    except (PondError, OSError, ValueError, RuntimeError) as error:
        ready.failed(f"{program.name}: {error}")
        return 1
    return 0


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
