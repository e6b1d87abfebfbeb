"""What serves a guest with remote memory on the hosts of a network: their data planes, and lenders elsewhere."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.migration.network import DESTINATION, LENDER_ADDRESS, LENDERS, SOURCE, Network
from pondstack.domain.units import MIB
from pondstack_rack.wait import wait_until
from pondstack_rdma.data_plane import PROGRAM
from rdma.tests.data_plane.processes import GUEST, DataPlane
from rdma.tests.harness import LenderProcess

BUFFER_MIB = 16
DEADLINE_MS = 60_000
SECONDS = 300.0


class Plane(DataPlane):
    """The data plane of a host."""

    def __init__(self, network: Network, host: str, folder: Path) -> None:
        program = folder / "data-plane"
        program.write_text(f'#!/bin/sh\nexec {" ".join(network.within(host))} {PROGRAM} "$@"\n')
        program.chmod(0o755)
        super().__init__(program, folder / "plane")
        self.large_files = True


class Lender:
    """Memory of another host, of which both hosts have keys."""

    def __init__(self, network: Network, folder: Path, mib: int) -> None:
        self.process = LenderProcess("tcp", folder, LENDER_ADDRESS, program=network.within(LENDERS))
        self._count = -(-mib // BUFFER_MIB)
        for _ in range(self._count):
            self.process.ask("register", size_bytes=BUFFER_MIB * MIB)

    def lend(self, plane: DataPlane, host: str, **flags: bool) -> None:
        """Have a host's data plane use keys of its own to all of it."""
        ticket = self.process.ask("admit", borrower=host)
        keys = [
            {**self.process.ask("export", region=index, borrower=host), "buffer": str(index), **flags}
            for index in range(self._count)
        ]
        plane.ask(verb="lease", guest=GUEST, lender="lender@a", ticket=ticket, keys=keys, deadline_ms=DEADLINE_MS)


@dataclass(frozen=True)
class Hosts:
    """Those of one migration. `key`: that of its hand-over."""

    source: Plane
    destination: Plane
    lender: Lender
    key: str

    def offer(self, address: str) -> dict[str, Any]:
        """Have the source offer its guest; where it is fetched."""
        asked = {"host": address, "key": self.key, "deadline_ms": DEADLINE_MS}
        port = self.source.ask(verb="hand_over", guest=GUEST, **asked)["handover"]["port"]
        return {**asked, "port": port, "references": True}

    def await_destination(self, state: str) -> None:
        """Wait until the destination is so far."""
        assert wait_until(lambda: self.destination.view()["handover"]["state"] == state, SECONDS, 0.01)

    def await_all(self) -> None:
        """Wait until the source has nothing of the guest any more."""
        assert wait_until(lambda: not self.source.ask(verb="view")["guests"], SECONDS, 0.05)
        assert wait_until(lambda: "handover" not in self.destination.view(), SECONDS, 0.01)


@contextmanager
def hosts(network: Network, folder: Path, lent_mib: int) -> Iterator[Hosts]:
    """Have them for a while."""
    planes = []
    for host in (SOURCE, DESTINATION):
        (folder / host).mkdir()
        planes.append(Plane(network, host, folder / host))
    (folder / LENDERS).mkdir()
    lender = Lender(network, folder / LENDERS, lent_mib)
    try:
        for plane in planes:
            plane.start()
            plane.await_ready()
        yield Hosts(*planes, lender, secrets.token_hex(32))
    finally:
        for plane in planes:
            if plane.runs:
                plane.kill()
        lender.process.close()
