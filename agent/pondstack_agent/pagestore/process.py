"""`pondstack-page-store`: the small process that keeps the pages of one consumer, and outlives the host's agent.

The agent starts it, finds it again by its folder, and asks it over `store.sock` there; whoever uses the pages speaks
NBD over `nbd.sock`. It goes into the background when it serves; then its exit code is 0, else the reason is on standard
error. SIGTERM ends it once the mirror has all that was written.
"""

import signal
import sys
from pathlib import Path

from pondstack_agent.helper.process import Ready, parser_of, run_helper
from pondstack_agent.pagestore.exporter import Exporter
from pondstack_agent.pagestore.program import PAGE_STORE
from pondstack_agent.pagestore.service import StoreService
from pondstack_agent.pagestore.settings import StoreSettings
from pondstack_agent.pagestore.store import PageStore
from pondstack_rdma.transports import load_transport

_CLOSE_SECONDS = 30.0


def main() -> int:
    """Become the page store of a folder."""
    arguments = parser_of(PAGE_STORE, __doc__ or "").parse_args()
    return run_helper(PAGE_STORE, arguments, lambda ready: serve(arguments.folder, ready))


def serve(folder: Path, ready: Ready) -> None:
    """Keep pages until told to end."""
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


if __name__ == "__main__":
    sys.exit(main())
