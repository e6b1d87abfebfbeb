"""NBD exports that guests swap to: a swap disk of the data plane, and the least that one can be, a file of a tmpfs."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.extension.swap_areas import CannotMeasure
from bench.extension.tiers import LEASE_MIB
from pondstack_rack.wait import wait_until
from pondstack_rdma.data_plane import PROGRAM
from rdma.tests.data_plane.lenders import Lender
from rdma.tests.data_plane.processes import BLOCK, DEADLINE_SECONDS, BlockPlane, end_with_parent

_MIB = 2**20


@contextlib.contextmanager
def block_device(folder: Path, mirror: Path, mib: int) -> Iterator[str]:
    """Have a data plane export so much, all of it with a lender over shared memory; yields the address.

    Pages are sealed, and written to a mirror in the folder `mirror` as well: what users have.
    """
    with contextlib.ExitStack() as stack:
        here = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="export-", dir=folder)))
        mirrors = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-mirror-", dir=mirror))
        plane = BlockPlane(PROGRAM, here / "plane")
        stack.callback(plane.close)
        plane.start()
        plane.await_ready()
        plane.export(mib, mirror=f"{mirrors}/mirror")
        lender = Lender(here, "lender1", block=BLOCK)
        stack.callback(lender.close)
        lender.lend(plane, -(-mib // LEASE_MIB))
        yield f"nbd+unix:///?socket={plane.socket}"


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
