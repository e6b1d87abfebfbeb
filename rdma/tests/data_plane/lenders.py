"""Lenders as processes that tests freeze and kill, and what they lend to a guest or a block device."""

from pathlib import Path

from pondstack_rdma.base import Transport
from pondstack_rdma.model import Key, Ticket

from ..harness import LenderProcess, shm, tcp, verbs
from .processes import GUEST, DataPlane

LEASE_BYTES = 4 * 2**20
DEADLINE_MS = 20_000
"""Of an access to a lender that answers, on however busy a machine."""

TRANSPORTS = {"shm": shm, "tcp": tcp, "verbs": verbs}


class Lender:
    """A lender process, and what it lends to this host: for the guest of the tests, or for another `borrower`."""

    def __init__(
        self, folder: Path, name: str, driver: str = "shm", deadline_ms: int = DEADLINE_MS, **borrower: str
    ) -> None:
        (folder / name).mkdir(parents=True)
        self._borrower = borrower or {"guest": GUEST}
        self.name, self.deadline_ms = name, deadline_ms
        self.process = LenderProcess(driver, folder / name)
        self.transport: Transport = TRANSPORTS[driver](folder / name)
        self.ticket: Ticket
        self.keys: list[Key] = []

    def make(self, count: int = 1, located: bool = False) -> None:
        """Make so many keys more; `located`: that say where their regions are."""
        for _ in range(count):
            self.ticket, key = self.process.lend("host1", LEASE_BYTES, located)
            self.keys.append(key)

    def lend(self, plane: DataPlane, count: int = 1) -> None:
        """Lend so many leases more, and have the data plane use them."""
        self.make(count)
        shown = {"ticket": self.ticket.to_dict(), "keys": [key.to_dict() for key in self.keys]}
        plane.ask(verb="lease", **self._borrower, lender=self.name, deadline_ms=self.deadline_ms, **shown)

    def connect(self, plane: DataPlane) -> None:
        """Have the data plane keep a link to it."""
        plane.ask(verb="connect", lender=self.name, ticket=self.ticket.to_dict(), deadline_ms=self.deadline_ms)

    def disclose(self, plane: DataPlane, *numbers: int, **borrower: str) -> None:
        """Have the data plane use keys over that link: all, or those with these places in the list of keys."""
        keys = [self.keys[number].to_dict() for number in numbers or range(len(self.keys))]
        plane.ask(verb="lease", **(borrower or self._borrower), lender=self.name, keys=keys)

    def used(self, plane: DataPlane) -> int:
        """Count the pages that are with it."""
        leases = plane.ask(verb="view", **self._borrower)["leases"]
        return sum(lease["used"] for lease in leases if lease["lender"] == self.name)

    def close(self) -> None:
        """End it; idempotent."""
        self.process.close()
