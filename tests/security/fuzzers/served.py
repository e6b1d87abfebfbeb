"""Processes of the agent's helpers, real ones, as those that attack their sockets see them."""

import os
import shutil
import signal
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pondstack.domain.errors import PondError
from pondstack_agent.helper.program import Program
from pondstack_agent.lending.client import Command, LenderClient
from pondstack_agent.lending.program import LENDER
from pondstack_rdma.base import Link
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.transports import load_transport

SECONDS = 30.0
HONEST, MALLORY = "honest", "mallory"
PAGE = 4096


@dataclass(frozen=True)
class Used:
    """What a process has of its machine."""

    descriptors: int
    threads: int
    kib: int


class Served:
    """One helper's process."""

    program: Program

    def __init__(self, name: str) -> None:
        self.name = name
        self.root = Path(tempfile.mkdtemp(prefix="fz-"))  # short: an address of a Unix socket has 107 bytes
        self.folder = self.root / "helper"

    @property
    def alive(self) -> bool:
        """Whether its process lives."""
        return self.program.runs(self.folder)

    def used(self) -> Used:
        """Return what its process has now."""
        proc = Path("/proc", str(self.program.pid(self.folder)))
        fields = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines() if ":" in line)
        descriptors = len(os.listdir(proc / "fd"))
        return Used(descriptors, int(fields["Threads"]), int(fields["VmRSS"].split()[0]))

    def log(self) -> str:
        """Return the end of its log."""
        with suppress(OSError):
            return (self.folder / self.program.log).read_text()[-2000:]
        return ""

    def check(self, number: int) -> str:
        """Use it as an honest client; returns what is wrong."""
        raise NotImplementedError

    def close(self) -> None:
        """End it, and remove what it had."""
        with suppress(PondError, OSError):
            if self.alive:
                os.kill(self.program.pid(self.folder), signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)


class ServedLender(Served):
    """A lender over `tcp` or `shm`: buffer 0 is an honest borrower's, buffer 1 Mallory's, who has a right ticket."""

    program = LENDER

    def __init__(self, transport: str) -> None:
        super().__init__(f"lender ({transport})")
        options = {"folder": str(self.root)} if transport == "shm" else {}
        self._transport = load_transport(transport, options)
        self.client = LenderClient(self.folder, Command("h1", transport, options, buffer_mib=1), SECONDS)
        self.client.start()
        self.incarnation = self.client.hold().incarnation
        granted = {}
        for borrower in (HONEST, MALLORY):
            index = self.client.register(self.incarnation)
            granted[borrower] = self.client.export(self.incarnation, [index], borrower)
        self.ticket = granted[MALLORY]["ticket"]
        self.key = granted[MALLORY]["keys"]["1"]
        self._ticket = Ticket.from_dict(granted[HONEST]["ticket"])
        self._key = Key.from_dict(granted[HONEST]["keys"]["0"])
        with self._connect() as link:
            link.write(self._key, 0, b"honest" * 100)

    def _connect(self) -> Link:
        return self._transport.connect(self._ticket, SECONDS)

    def check(self, number: int) -> str:
        """See that the agent and the honest borrower are served, and nobody else has written."""
        if self.client.hold().incarnation != self.incarnation:
            return "another incarnation answers the agent"
        with self._connect() as link:
            if link.read(self._key, 0, 600) != b"honest" * 100:
                return "the honest borrower's memory was written by somebody else"
            note = f"{number}".encode().ljust(16)
            link.write(self._key, PAGE, note)
            return "" if link.read(self._key, PAGE, 16) == note else "a write is not there"
