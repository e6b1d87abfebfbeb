"""`pondstack-page-store`: the small process that keeps the pages of one consumer, and outlives the host's agent.

The agent starts it, finds it again by its folder, and asks it over `store.sock` there; whoever uses the pages speaks
NBD over `nbd.sock`. It goes into the background when it serves; then its exit code is 0, else the reason is on standard
error. SIGTERM ends it once the mirror has all that was written.
"""

import signal
import sys
from pathlib import Path

from pondstack import native_threads

native_threads.use()

from pondstack_agent.helper.process import Ready, parser_of, run_helper  # noqa: E402 (threading first)
from pondstack_agent.pagestore.exporter import Exporter  # noqa: E402
from pondstack_agent.pagestore.program import PAGE_STORE  # noqa: E402
from pondstack_agent.pagestore.service import StoreService  # noqa: E402
from pondstack_agent.pagestore.settings import StoreSettings  # noqa: E402
from pondstack_agent.pagestore.store import PageStore  # noqa: E402
from pondstack_rdma.transports import load_transport  # noqa: E402

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
