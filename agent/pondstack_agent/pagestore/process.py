"""`pondstack-page-store`: the small process that keeps the pages of one consumer, and outlives the host's agent.

The agent starts it, finds it again by its folder, and asks it over `store.sock` there; whoever uses the pages speaks
NBD over `nbd.sock`. It goes into the background when it serves; then its exit code is 0, else the reason is on standard
error. SIGTERM ends it once the mirror has all that was written.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from pondstack.domain.errors import PondError
from pondstack_agent.helper.daemonize import Ready, run_in_background, run_in_foreground
from pondstack_agent.helper.lock import hold_lock, write_state
from pondstack_agent.pagestore.exporter import Exporter
from pondstack_agent.pagestore.service import StoreService
from pondstack_agent.pagestore.settings import StoreSettings
from pondstack_agent.pagestore.store import PageStore
from pondstack_rdma.transports import load_transport

LOG, LOCK = "store.log", "store.lock"
_CLOSE_SECONDS = 30.0


def main() -> int:
    """Become the page store of a folder."""
    arguments = _parser().parse_args()
    folder: Path = arguments.folder
    try:
        lock = hold_lock(folder, LOCK)
    except OSError as error:
        print(f"pondstack-page-store: {folder} is another one's, or no folder of ours: {error}", file=sys.stderr)
        return 1
    # Before anything that may take long: whoever ends it must not read the number of a former process.
    write_state(lock, {"pid": os.getpid()})
    if arguments.foreground:
        return run_in_foreground(lambda ready: run(folder, lock, ready))
    return run_in_background(lambda ready: run(folder, lock, ready), folder / LOG)


def run(folder: Path, lock: int, ready: Ready) -> int:
    """Keep pages until told to end."""
    write_state(lock, {"pid": os.getpid()})
    try:
        settings = StoreSettings.read(folder)
        transport = load_transport(settings.transport, settings.options)
        store = PageStore(folder, settings, transport)
        try:
            service = StoreService(folder, store)
            signal.signal(signal.SIGTERM, lambda _number, _frame: service.stop())
            exporter = Exporter(folder, store.pages, settings.pages, settings.patience_seconds)
            ready.serves()
            service.wait()
            exporter.close()
        finally:
            store.close(_CLOSE_SECONDS)
    except (PondError, OSError, ValueError, RuntimeError) as error:
        ready.failed(f"pondstack-page-store: {error}")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pondstack-page-store", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="where its settings, sockets and lock are")
    parser.add_argument("--foreground", action="store_true", help="stay in the foreground, for a unit of systemd")
    return parser


if __name__ == "__main__":
    sys.exit(main())
