"""What the tests of transports share: a lender in this process, and one in a process that may be frozen or killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from pondstack_rack.wait import wait_until
from pondstack_rdma.base import Lender, Link, Transport
from pondstack_rdma.fault import FaultLink, FaultPlan, FaultTransport
from pondstack_rdma.model import Key, Region, Ticket
from pondstack_rdma.shm import ShmTransport
from pondstack_rdma.tcp import TcpTransport
from pondstack_rdma.verbs import VerbsTransport

PAGE = 4096
SIZE = 64 * PAGE
DEADLINE_SECONDS = 30.0
"""For what must happen at some time, on however busy a machine."""

TIMEOUT_SECONDS = 10.0
"""Of links whose lender answers."""

SHORT_SECONDS = 0.3
"""Of links whose lender does not."""


def shm(folder: Path) -> Transport:
    """Shared memory."""
    return ShmTransport(folder)


def shm_python(folder: Path) -> Transport:
    """Shared memory without the compiled part."""
    return ShmTransport(folder, access_type=None)


def tcp(_folder: Path) -> Transport:
    """TCP."""
    return TcpTransport()


def verbs(_folder: Path) -> Transport:
    """RDMA, over the device that this host reaches itself by."""
    return VerbsTransport()


def late(make: Callable[[Path], Transport]) -> Callable[[Path], Transport]:
    """Wrap a transport so that every other call is late: what it promises must hold then, too."""

    def made(folder: Path) -> Transport:
        return FaultTransport(make(folder), FaultPlan(seed=5, delayed=0.5, max_delay_seconds=0.001))

    made.__name__ = f"late_{make.__name__}"
    return made


VERBS = "PONDSTACK_TEST_VERBS"
"""Set where there is an RDMA device: in the emulated hosts of tests/hardware. Then the contract is that driver's."""

ANYWHERE: list[Callable[[Path], Transport]] = [shm, shm_python, tcp, late(shm), late(tcp)]
HARNESSES: list[Callable[[Path], Transport]] = [verbs, late(verbs)] if os.environ.get(VERBS) else ANYWHERE
"""A new driver adds its factory here and passes unchanged."""


@dataclass
class Rig:
    """A lender in this process, a region of it, and a borrower with a key of it."""

    transport: Transport
    lender: Lender
    region: Region
    key: Key
    link: Link

    def borrow(self, borrower: str) -> Link:
        """Connect another borrower."""
        return connect(self.transport, self.lender.admit(borrower))

    def after_refusal(self) -> Link:
        """Connect anew where a refusal has ended the link, as its driver said it would."""
        if self.transport.characteristics.refusal_ends_link:
            self.link.close()
            self.link = self.borrow(self.key.borrower)
        return self.link


class LenderProcess:
    """A lender in a process of its own."""

    def __init__(self, driver: str, folder: Path, *host: str, program: tuple[str, ...] = ()) -> None:
        """`host`: where it listens over tcp; `program`: what becomes it, in front of its command line."""
        self.driver = driver
        script = Path(__file__).with_name("lender_process.py")
        self.process = subprocess.Popen(
            [*program, sys.executable, str(script), driver, str(folder), *host],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=child_environment(),
        )

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Have it carry out one command."""
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps({"verb": verb, **arguments}), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def lend(self, borrower: str, size_bytes: int = SIZE, located: bool = False) -> tuple[Ticket, Key]:
        """Register a region and export it to a borrower; `located`: by a key that says where it is."""
        region = self.ask("register", size_bytes=size_bytes)
        key = Key.from_dict(self.ask("export", region=region, borrower=borrower))
        if located:
            key = Key.from_dict(self.ask("locate", number=key.number))
        return Ticket.from_dict(self.ask("admit", borrower=borrower)), key

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all its threads for a block, as a cgroup's freezer does."""
        self.process.send_signal(signal.SIGSTOP)
        # Each of them stops by itself: the first one says nothing of the others.
        assert wait_until(lambda: set(self._states()) == {"T"}, DEADLINE_SECONDS)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it, as a crash does, and wait for its end."""
        self.process.kill()
        self.process.wait(DEADLINE_SECONDS)

    def cpu_ticks(self) -> int:
        """CPU time that it has used so far, in clock ticks."""
        return sum(int(field) for field in _stat(Path(f"/proc/{self.process.pid}/stat"))[11:13])

    def close(self) -> None:
        """End it and wait."""
        self.process.kill()
        self.process.communicate()

    def _states(self) -> list[str]:
        return [_stat(path)[0] for path in Path(f"/proc/{self.process.pid}/task").glob("*/stat")]


def _stat(path: Path) -> list[str]:
    """Return the fields behind the name of a process or thread."""
    return path.read_text().rpartition(")")[2].split()


def child_environment() -> dict[str, str]:
    """Return the environment of a process that imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def open_descriptors() -> set[tuple[str, str]]:
    """Return what this process has open, by number and target."""
    found = set()
    for entry in os.listdir("/proc/self/fd"):
        try:
            found.add((entry, os.readlink(f"/proc/self/fd/{entry}")))
        except FileNotFoundError:
            continue  # the folder itself
    return found


@lru_cache(maxsize=64)
def pattern(seed: int, size: int) -> bytes:
    """Bytes that differ from page to page and from seed to seed."""
    return b"".join((seed * 1_000_003 + index).to_bytes(8, "little") for index in range(size // 8))


def connect(transport: Transport, ticket: Ticket, seconds: float = TIMEOUT_SECONDS) -> Link:
    """Connect with the time-out of tests."""
    return transport.connect(ticket, seconds)


@contextmanager
def impatient(link: Link) -> Iterator[None]:
    """Have a link wait for SHORT_SECONDS only, for a block: while its lender cannot answer, and not before or after."""
    inner = link
    while isinstance(inner, FaultLink):
        inner = inner._inner
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inner, "_seconds", SHORT_SECONDS)
        yield


class Clock:
    """Stands in for the module `time`: real time and what a test adds, or the time of a test alone."""

    def __init__(self, *, stands: bool = False) -> None:
        self._begun = time.monotonic() if stands else None
        self._looks = 0
        self.later = 0.0

    def monotonic(self) -> float:
        """Tell it."""
        self._looks += 1
        return (time.monotonic() if self._begun is None else self._begun) + self.later

    sleep = staticmethod(time.sleep)

    def looked_at(self, times: int = 3) -> None:
        """Return once somebody has asked for it so often from now on."""
        wanted = self._looks + times
        assert wait_until(lambda: self._looks >= wanted, DEADLINE_SECONDS, 0.005)
