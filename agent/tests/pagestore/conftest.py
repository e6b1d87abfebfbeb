"""Page stores in this process, over lenders of shared memory in this process."""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pondstack.domain.units import MIB
from pondstack_agent.pagestore.exporter import Exporter
from pondstack_agent.pagestore.settings import StoreSettings
from pondstack_agent.pagestore.store import PageStore
from pondstack_rack.wait import wait_until
from pondstack_rdma.base import Lender
from pondstack_rdma.model import Key
from pondstack_rdma.shm import ShmTransport
from tests.fixtures.page_reader import PageReader

SECONDS = 30.0
PAGE = 4096


def content(page: int, version: int) -> bytes:
    """Return what a test writes: of each page and version another one."""
    return f"{page}.{version};".encode().ljust(32, b".") * (PAGE // 32)


@dataclass
class Bench:
    """One store of `mib`, and lenders by name."""

    folder: Path
    settings: StoreSettings
    transport: ShmTransport
    lenders: dict[str, Lender] = field(default_factory=dict)
    keys: dict[tuple[str, int], Key] = field(default_factory=dict)
    store: PageStore = field(init=False)
    exporter: Exporter = field(init=False)

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """Begin, or go on with what is on disk."""
        self.store = PageStore(self.folder, self.settings, self.transport)
        self.exporter = Exporter(self.folder, self.store.pages, self.settings.pages, SECONDS)

    def reader(self) -> PageReader:
        """Connect."""
        return PageReader(self.folder)

    def arrive(self, name: str, index: int, mib: int = 1) -> Key:
        """Have a lender lend a buffer, and the store use it."""
        lender = self.lenders.get(name) or self.lenders.setdefault(name, self.transport.lend(name))
        key = self.keys[name, index] = lender.export(lender.register(mib * MIB), "host1")
        assert self.tell(name, index) == [index]
        assert wait_until(lambda: bool(self.room(name)), SECONDS, 0.01)
        return key

    def tell(self, name: str, index: int) -> list[int]:
        """Tell the store of a buffer, again maybe."""
        ticket = self.lenders[name].admit("host1").to_dict()
        return self.store.leases.arrive(name, ticket, {str(index): self.keys[name, index].to_dict()})

    def leave(self, name: str, index: int, seconds: float = 0.0) -> list[int]:
        """Have the store leave a buffer."""
        numbers = {str(index): self.keys[name, index].number}
        return self.store.leases.leave(name, numbers, leave_seconds=seconds, wait_seconds=SECONDS)

    def room(self, name: str) -> int:
        """Free pages on a lender that answers."""
        up = {peer.name for peer in self.store.pages.places.peers() if peer.state == "up"}
        holdings = self.store.pages.places.holdings()
        return sum(each.free for each in holdings if each.lease.lender == name and name in up)

    def close(self) -> None:
        """End all."""
        self.exporter.close()
        self.store.close(SECONDS)
        for lender in self.lenders.values():
            lender.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A store of 2 MiB."""
    folder = Path(tempfile.mkdtemp(prefix="page-"))  # short: an address of a Unix socket has 107 bytes
    settings = StoreSettings("consumer1", 2, str(folder / "mirror"), "shm", queue_pages=64)
    made = Bench(folder, settings, ShmTransport(folder))
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder)
