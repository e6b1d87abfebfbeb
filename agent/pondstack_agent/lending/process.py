"""`pondstack-lender`: the small process that holds what a host lends, and outlives the host's agent.

One per host and life of its memory (incarnation). The agent starts it, finds it again by the folder, and asks it over
the socket there. It goes into the background when it serves; then its exit code is 0, else the reason is on standard
error. SIGTERM ends it, and with it all keys; SIGSTOP or a cgroup's freezer stops it, and what was opened serves on.
"""

import argparse
import os
import signal
import sys
import uuid
from pathlib import Path

from pondstack.domain.errors import PondError
from pondstack_agent.lending.book import Book
from pondstack_agent.lending.lock import hold_lock, write_state
from pondstack_agent.lending.service import LenderService
from pondstack_agent.transports import load_transport

LOG = "lender.log"
_READY = b"ready"


def main() -> int:
    """Become the lender of a host."""
    arguments = _parser().parse_args()
    try:
        lock = hold_lock(arguments.folder)
    except OSError as error:
        print(
            f"pondstack-lender: {arguments.folder} is another lender's, or no folder of ours: {error}", file=sys.stderr
        )
        return 1
    if arguments.foreground:
        return run(arguments, lock, 2)
    reader, writer = os.pipe()
    if child := os.fork():
        os.close(writer)
        return _await(reader, child)
    os.close(reader)
    os.setsid()
    # Not by sys.exit: what the parent has buffered is the parent's.
    os._exit(run(arguments, lock, writer))


def run(arguments: argparse.Namespace, lock: int, ready: int) -> int:
    """Lend until told to end; says on the descriptor `ready` that it serves, or why it does not."""
    incarnation = str(uuid.uuid4())
    try:
        transport = load_transport(arguments.transport, dict(word.split("=", 1) for word in arguments.option))
        with transport.lend(arguments.host) as lender:
            service = LenderService(
                arguments.folder, Book(lender, arguments.buffer_mib), incarnation, arguments.buffer_mib
            )
            signal.signal(signal.SIGTERM, lambda _number, _frame: service.stop())
            write_state(lock, {"pid": os.getpid(), "incarnation": incarnation})
            if not arguments.foreground:
                _detach(arguments.folder)
                os.write(ready, _READY)
                os.close(ready)
                ready = sys.stderr.fileno()  # its log from now on
            service.serve()
    except (PondError, OSError, ValueError, RuntimeError) as error:
        os.write(ready, f"pondstack-lender: {error}\n".encode())
        return 1
    return 0


def _await(reader: int, child: int) -> int:
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    if said == _READY:
        return 0
    os.waitpid(child, 0)
    sys.stderr.write(said.decode(errors="replace") or "pondstack-lender: it ended at its start; see its log\n")
    return 1


def _detach(folder: Path) -> None:
    """Let go of the agent's descriptors; what goes wrong from here on is in a file."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    file = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for handle, number in ((nowhere, 0), (file, 1), (file, 2)):
        os.dup2(handle, number)
    os.close(nowhere)
    os.close(file)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pondstack-lender", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="where its socket and its lock are; one per host")
    parser.add_argument("--host", required=True, help="name of the host, as its agent has it")
    parser.add_argument("--transport", required=True, help="entry point of the group pondstack.transports")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="option of the transport")
    parser.add_argument("--buffer-mib", type=int, required=True, help="size of a buffer in MiB")
    parser.add_argument("--foreground", action="store_true", help="stay in the foreground, for a unit of systemd")
    return parser


if __name__ == "__main__":
    sys.exit(main())
