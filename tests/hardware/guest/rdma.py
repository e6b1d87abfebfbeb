"""A lender and a borrower over verbs, each in a process of its own of some host."""

import hashlib
import random
import select
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

from pondstack.domain.errors import PondError
from pondstack_agent.power.ringer import Ringer
from pondstack_rack.wait import Deadline
from pondstack_rdma.errors import TransportGone, TransportTimeout
from pondstack_rdma.model import Key, Operation, Read, Region, Ticket, Write
from pondstack_rdma.verbs import VerbsTransport, handshake
from pondstack_rdma.verbs.connection import Connection
from pondstack_rdma.verbs.link import RemoteRegion, VerbsLink
from pondstack_rdma.verbs.requester import Request, Requester
from pondstack_rdma.verbs.status import REFUSALS

PIECE_BYTES = 64 * 2**10
DEPTH = 16
SECONDS = 60.0
"""Time-out of links: TCG on a busy machine stands still for seconds."""


class Lending:
    """A lender of this host."""

    def __init__(self) -> None:
        self._lender = VerbsTransport().lend("tests")
        self._regions: dict[Key, Region] = {}

    def lend(self, borrower: str, size_bytes: int) -> tuple[Ticket, Key]:
        """Register a region and export it."""
        region = self._lender.register(size_bytes)
        key = self._lender.export(region, borrower)
        self._regions[key] = region
        return self._lender.admit(borrower), key

    def locate(self, key: Key) -> Key:
        """Return a key with the location of its region."""
        return self._lender.locate(key)

    def fill(self, key: Key, seed: int) -> str:
        """Fill a region with noise; its digest."""
        self._lender.store(self._regions[key], 0, random.Random(seed).randbytes(key.size_bytes))
        return self.digest(key)

    def digest(self, key: Key) -> str:
        """Return the digest of what a region contains."""
        return hashlib.sha256(self._lender.load(self._regions[key], 0, key.size_bytes)).hexdigest()

    def revoke(self, key: Key) -> bool:
        """End a key and give its region back to the host."""
        return self._lender.revoke(key) and self._lender.deregister(self._regions.pop(key))

    def available_bytes(self) -> int:
        """Return the memory that this host has to give.

        With what CPUs keep of freed pages in lists of their own, which does not count as free: in a larger host more.
        """
        (line,) = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable")]
        words = [line.split() for line in Path("/proc/zoneinfo").read_text().splitlines()]
        kept = sum(int(word[1]) for word in words if word[:1] == ["count:"])
        return int(line.split()[1]) * 1024 + kept * PAGESIZE


class Borrowing:
    """Links of one borrower to one lender."""

    def __init__(self, ticket: Ticket, seconds: float = SECONDS) -> None:
        self._ticket, self._seconds = ticket, seconds
        self._link = self._connect()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go_on)
        self._passes, self._wrong = 0, 0

    def open(self, keys: Sequence[Key]) -> None:
        """Open keys, on a new link where the last one was ended."""
        try:
            self._link.flush()
        except TransportGone:
            self._link.close()
            self._link = self._connect()
        for key in keys:
            self._link.open(key)

    def regions(self) -> list[tuple[int, ...]]:
        """Return what the device knows the open regions by: the fields of each RemoteRegion."""
        return [tuple(region) for region in self._link._regions.values()]

    def write_all(self, keys: Sequence[Key], seed: int, part: int = 0, parts: int = 1) -> float:
        """Write every piece of the regions once, or one part of them, in a seeded random order; the seconds."""
        return self._each(
            batches(keys, seed, part, parts), lambda batch: [Write(key, at, noise(key, at)) for key, at in batch]
        )[0]

    def read_all(self, keys: Sequence[Key], seed: int, part: int = 0, parts: int = 1) -> tuple[float, int]:
        """Read them, in another order: the seconds, and how many are not what was written."""
        buffers = [bytearray(PIECE_BYTES) for _ in range(DEPTH)]
        return self._each(
            batches(keys, seed, part, parts),
            lambda batch: [Read(key, at, into) for (key, at), into in zip(batch, buffers, strict=False)],
        )

    def error(self, key: Key) -> str:
        """Return the class of the error that an access ends with, "" for none."""
        try:
            self._link.read(key, 0, 8)
        except PondError as error:
            return type(error).__name__
        return ""

    def read_until_gone(self, key: Key, within: float) -> tuple[str, float]:
        """Read until that fails: the class of the error, and the seconds of the last call."""
        ends = time.monotonic() + within
        while time.monotonic() < ends:
            begun = time.monotonic()
            found = self.error(key)
            if found:
                return found, time.monotonic() - begun
        return "", within

    def start(self, key: Key) -> None:
        """Write and verify a region over and over, in a thread of its own."""
        self._key = key
        self._thread.start()

    def stop(self) -> tuple[int, int]:
        """End that: passes, and how many were wrong."""
        self._stop.set()
        self._thread.join()
        return self._passes, self._wrong

    def forge(
        self, key: Key, foreign: tuple[int, ...], revoked: tuple[int, ...], seed: int, rounds: int
    ) -> tuple[dict[str, int], int]:
        """Send requests that no library would to the lender's device: how many of each kind, how many not refused.

        `foreign` is the region of another borrower, `revoked` one that was this borrower's.
        """
        dice, kinds, served = random.Random(seed), Counter[str](), 0
        for _ in range(rounds):
            with self._connect() as link:
                link.open(key)
                kind, region, length = forged(dice, link._regions[key], RemoteRegion(*foreign), RemoteRegion(*revoked))
                is_read = dice.choice((True, False))
                request = Request(is_read, region.address, region.rkey, memoryview(bytearray(b"\xff" * length)))
                done, status = link._requester.carry_out([request], time.monotonic() + self._seconds)
                kinds[kind] += 1
                served += bool(done) or status not in REFUSALS
        return dict(kinds), served

    def _connect(self) -> VerbsLink:
        """Connect to a lender that answers, however long its host takes; the link's own time-out is another matter."""
        deadline = Deadline(SECONDS)
        while True:
            try:
                return VerbsTransport().connect(self._ticket, self._seconds)
            except TransportTimeout:
                if deadline.over:
                    raise
            deadline.pause()

    def _each(self, pieces: Iterator[list[tuple[Key, int]]], batch_of: Any) -> tuple[float, int]:
        wrong, seconds = 0, 0.0
        for batch in pieces:
            operations: list[Operation] = batch_of(batch)
            begun = time.monotonic()
            self._link.batch(operations)
            seconds += time.monotonic() - begun
            for (key, at), operation in zip(batch, operations, strict=True):
                wrong += isinstance(operation, Read) and operation.into != noise(key, at)
        return seconds, wrong

    def _go_on(self) -> None:
        while not self._stop.is_set() or not self._passes:
            data = random.Random(self._passes).randbytes(4096)
            at = 4096 * (self._passes % (self._key.size_bytes // 4096))
            self._link.write(self._key, at, data)
            self._wrong += self._link.read(self._key, at, 4096) != data
            self._passes += 1


class Ringing(Ringer):
    """Who rings for hosts that sleep, over this host's device."""

    def __init__(self) -> None:
        super().__init__(VerbsTransport(), SECONDS)

    def forge(self, sleeper: str) -> None:
        """Ring with another token, by the connection and the key that it has."""
        known = self._connected[sleeper]
        known.link.write(known.key, 0, known.token[::-1])


class Waiting:
    """A borrower that is connected by librdmacm, and by nothing else that would hear of the lender's end."""

    def __init__(self, ticket: Ticket) -> None:
        self._connection = Connection(ticket.address, SECONDS)
        self._requester = Requester(self._connection.device, fd := self._connection.fileno(), fd, 1, 4096, SECONDS)
        self._connection.request(self._requester.native.qpn, handshake.request(ticket))
        self._requester.connect(self._connection.attrs(), SECONDS)
        self._connection.establish()

    def ended(self, within: float) -> bool:
        """Tell whether the lender's end is heard of within so many seconds."""
        return bool(select.select([self._connection], [], [], within)[0])


def forged(
    dice: random.Random, own: RemoteRegion, foreign: RemoteRegion, revoked: RemoteRegion
) -> tuple[str, RemoteRegion, int]:
    """Draw a forged access: its kind, address and key in a region, and its length."""
    length = dice.choice((1, 8, 4096, 65536))
    inside = dice.randrange(own.size_bytes - length)
    match dice.choice(("address before", "address beyond", "length", "key bit", "key", "foreign", "mixed", "revoked")):
        case "address before":
            return "address", own._replace(address=own.address - dice.randint(1, 2**30)), length
        case "address beyond":
            return "address", own._replace(address=own.address + own.size_bytes + dice.randrange(2**30)), length
        case "length":
            return (
                "length",
                own._replace(address=own.address + own.size_bytes - dice.randint(1, length) + 1),
                length + 1,
            )
        case "key bit":
            return "key", own._replace(address=own.address + inside, rkey=own.rkey ^ 1 << dice.randrange(32)), length
        case "key":
            return "key", own._replace(address=own.address + inside, rkey=dice.randrange(2**32)), length
        case "foreign":
            return "another borrower's", foreign._replace(address=foreign.address + inside), length
        case "mixed":
            return "another borrower's address", own._replace(address=foreign.address + inside), length
    return "revoked", revoked._replace(address=revoked.address + inside), length


_NOISE = random.Random(5).randbytes(2 * PIECE_BYTES)


def noise(key: Key, at: int) -> bytes:
    """Return the content of a piece: no two are alike."""
    number = key.number * 2**32 + at
    shift = number // PIECE_BYTES * 61 % PIECE_BYTES
    return number.to_bytes(8, "little") + _NOISE[shift : shift + PIECE_BYTES - 8]


def batches(keys: Sequence[Key], seed: int, part: int, parts: int) -> Iterator[list[tuple[Key, int]]]:
    """Yield one part of all pieces of the regions, in a seeded random order, DEPTH at a time."""
    pieces = [(key, at) for key in keys for at in range(0, key.size_bytes, PIECE_BYTES)]
    random.Random(seed).shuffle(pieces)
    pieces = pieces[part::parts]
    for first in range(0, len(pieces), DEPTH):
        yield pieces[first : first + DEPTH]
