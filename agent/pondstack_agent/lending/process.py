"""`pondstack-lender`: the small process that holds what a host lends, and outlives the host's agent.

One per host and life of its memory (incarnation). The agent starts it, finds it again by the folder, and asks it over
the socket there. It goes into the background when it serves; then its exit code is 0, else the reason is on standard
error. SIGTERM ends it, and with it all keys; SIGSTOP or a cgroup's freezer stops it, and what was opened serves on.
"""

import argparse
import signal
import sys
import uuid

from pondstack_agent.helper.process import Ready, parser_of, run_helper
from pondstack_agent.lending.buffer_table import BufferTable
from pondstack_agent.lending.program import LENDER
from pondstack_agent.lending.service import LenderService
from pondstack_rdma.transports import load_transport


def main() -> int:
    """Become the lender of a host."""
    arguments = _parser().parse_args()
    return run_helper(LENDER, arguments, lambda ready: serve(arguments, ready))


def serve(arguments: argparse.Namespace, ready: Ready) -> None:
    """Lend until told to end."""
    incarnation = str(uuid.uuid4())
    transport = load_transport(arguments.transport, dict(word.split("=", 1) for word in arguments.option))
    with transport.lend(arguments.host) as lender:
        book = BufferTable(lender, arguments.buffer_mib)
        service = LenderService(arguments.folder, book, incarnation, arguments.buffer_mib)
        signal.signal(signal.SIGTERM, lambda _number, _frame: service.stop())
        ready.serves(incarnation=incarnation)
        service.serve()


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(LENDER, __doc__ or "")
    parser.add_argument("--host", required=True, help="name of the host, as its agent has it")
    parser.add_argument("--transport", required=True, help="entry point of the group pondstack.transports")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="option of the transport")
    parser.add_argument("--buffer-mib", type=int, required=True, help="size of a buffer in MiB")
    return parser


if __name__ == "__main__":
    sys.exit(main())
