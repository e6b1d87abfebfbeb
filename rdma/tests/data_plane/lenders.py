"""Lenders over shared memory, as processes that tests freeze and kill, and what they lend to a data plane's guest."""

from pathlib import Path

from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.shm import ShmTransport

from ..harness import LenderProcess
from .processes import GUEST, DataPlane

LEASE_BYTES = 4 * 2**20


class Lender:
    """A lender process, and what it lends to this host."""

    def __init__(self, folder: Path, name: str) -> None:
        (folder / name).mkdir()
        self.name = name
        self.process = LenderProcess("shm", folder / name)
        self.transport = ShmTransport(folder / name)
        self.ticket: Ticket
        self.keys: list[Key] = []

    def lend(self, plane: DataPlane, count: int = 1) -> None:
        """Lend so many leases more, and have the data plane use them."""
        for _ in range(count):
            self.ticket, key = self.process.lend("host1", LEASE_BYTES)
            self.keys.append(key)
        keys = [key.to_dict() for key in self.keys]
        plane.ask(verb="lease", guest=GUEST, lender=self.name, ticket=self.ticket.to_dict(), keys=keys)

    def used(self, plane: DataPlane) -> int:
        """Count the pages that are with it."""
        return sum(lease["used"] for lease in plane.view()["leases"] if lease["lender"] == self.name)

    def close(self) -> None:
        """End it; idempotent."""
        self.process.close()
