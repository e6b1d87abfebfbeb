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
from pondstack_agent.helper.daemonize import Ready, run_in_background, run_in_foreground
from pondstack_agent.helper.lock import hold_lock, write_state
from pondstack_agent.lending.buffer_table import BufferTable
from pondstack_agent.lending.service import LenderService
from pondstack_rdma.transports import load_transport

LOG = "lender.log"


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
        return run_in_foreground(lambda ready: run(arguments, lock, ready))
    return run_in_background(lambda ready: run(arguments, lock, ready), arguments.folder / LOG)


def run(arguments: argparse.Namespace, lock: int, ready: Ready) -> int:
    """Lend until told to end."""
    incarnation = str(uuid.uuid4())
    try:
        transport = load_transport(arguments.transport, dict(word.split("=", 1) for word in arguments.option))
        with transport.lend(arguments.host) as lender:
            service = LenderService(
                arguments.folder, BufferTable(lender, arguments.buffer_mib), incarnation, arguments.buffer_mib
            )
            signal.signal(signal.SIGTERM, lambda _number, _frame: service.stop())
            write_state(lock, {"pid": os.getpid(), "incarnation": incarnation})
            ready.serves()
            service.serve()
    except (PondError, OSError, ValueError, RuntimeError) as error:
        ready.failed(f"pondstack-lender: {error}")
        return 1
    return 0


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
