"""NBD exports that guests swap to: the page store of the agent, and the least that one can be, a file of a tmpfs."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.extension.swap_areas import CannotMeasure
from pondstack_agent.pagestore.client import StoreClient
from pondstack_agent.pagestore.exporter import SOCKET
from pondstack_agent.pagestore.settings import StoreSettings
from pondstack_rack.wait import wait_until
from rdma.tests.data_plane.processes import DEADLINE_SECONDS, end_with_parent
from rdma.tests.harness import LenderProcess

_MIB = 2**20
_SECONDS = 60.0
_CONSUMER = "6f1c2d1e-0000-4000-8000-000000000002"


@contextlib.contextmanager
def page_store(folder: Path, mirror: Path, mib: int) -> Iterator[str]:
    """Have the agent's page store export so much, all of it with a lender over shared memory; yields the address.

    Pages are sealed, and written to a mirror in the folder `mirror` as well: what users have.
    """
    here = Path(tempfile.mkdtemp(prefix="store-", dir=folder))
    client = StoreClient(here / "pages", "", _SECONDS)
    lender = LenderProcess("shm", here)
    path = mirror / f"mirror-{os.getpid()}"
    try:
        client.make(StoreSettings(_CONSUMER, mib, str(path), "shm", {"folder": str(here)}))
        client.start()
        ticket, key = lender.lend("host1", mib * _MIB)
        if client.arrive("lender1", ticket.to_dict(), {0: key.to_dict()}) != [0]:
            raise CannotMeasure("the page store does not take the lender's memory")
        yield f"nbd+unix:///?socket={here / 'pages' / SOCKET}"
    finally:
        client.remove(path)
        lender.close()


@contextlib.contextmanager
def memory(folder: Path, mib: int) -> Iterator[str]:
    """Have qemu-nbd export a file of a tmpfs: not sealed, no mirror, no network. Yields the address."""
    here = Path(tempfile.mkdtemp(prefix="export-", dir=folder))
    disk, listens = here / "disk", here / "nbd.sock"
    disk.write_bytes(b"")
    os.posix_fallocate(fd := os.open(disk, os.O_RDWR), 0, mib * _MIB)
    os.close(fd)
    command = ["qemu-nbd", "--persistent", "--shared=4", "--format=raw", f"--socket={listens}", str(disk)]
    server = subprocess.Popen(command, preexec_fn=end_with_parent)
    try:
        if not wait_until(lambda: listens.exists() or server.poll() is not None, DEADLINE_SECONDS, 0.01):
            raise CannotMeasure("qemu-nbd does not start")
        yield f"nbd+unix:///?socket={listens}"
    finally:
        server.kill()
        server.wait()
        disk.unlink()
