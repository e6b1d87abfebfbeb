"""A data plane for one turn, and where it keeps the pages that are not local: with a lender, and in a mirror."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.extension.memory_group import memory_group
from pondstack_agent.data_plane.views import PAGE_BYTES
from pondstack_rack.wait import wait_until
from pondstack_rdma.data_plane import PROGRAM
from rdma.tests.data_plane.lenders import LEASE_BYTES, Lender
from rdma.tests.data_plane.processes import DEADLINE_SECONDS, GUEST, DataPlane, Guest

SHARED_MEMORY = Path("/dev/shm")
LEASE_MIB = LEASE_BYTES // 2**20
_MIB = 2**20


@dataclass(frozen=True)
class Tiers:
    """So many MiB with a lender over shared memory, all in a mirror in a folder.

    `cache_mib`: what the data plane may use of the page cache, so that the mirror is read from its disk; 0: no limit.
    """

    mirror: Path = SHARED_MEMORY
    lent_mib: int = 0
    cache_mib: int = 0


@dataclass(frozen=True)
class Extension:
    """A data plane that serves one guest."""

    plane: DataPlane
    mirror: Path
    lender: Lender | None
    leases: int

    def attach(self, guest: Guest, memory_mib: int, local_mib: int, **settings: Any) -> None:
        """Have it serve a guest, and wait until no more than the limit is local."""
        self.plane.attach(guest, self.mirror, memory_mib, **settings)
        if self.lender:
            self.lender.lend(self.plane, self.leases)
        self.plane.ask(verb="limit", guest=GUEST, limit_mib=local_mib)
        pages = local_mib * _MIB // PAGE_BYTES
        assert wait_until(lambda: bool(self.plane.view()["resident_pages"] <= pages), DEADLINE_SECONDS, 0.02)


@contextlib.contextmanager
def served(folder: Path, tiers: Tiers) -> Iterator[Extension]:
    """Run a data plane, and a lender where there is to be one. The guest has to end within the block."""
    with contextlib.ExitStack() as stack:
        here = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turn-", dir=folder)))
        mirrors = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-mirror-", dir=tiers.mirror)))
        group = stack.enter_context(memory_group("plane")) if tiers.cache_mib else None
        plane = DataPlane(PROGRAM, here / "plane")
        stack.callback(lambda: plane.kill() if plane.runs else None)
        plane.start()
        plane.await_ready()
        if group:
            assert plane.process
            group.take(plane.process.pid)
            group.limit(tiers.cache_mib)
        lender = Lender(here, "lender1") if tiers.lent_mib else None
        if lender:
            stack.callback(lender.close)
        yield Extension(plane, mirrors / "mirror", lender, tiers.lent_mib * _MIB // LEASE_BYTES)
