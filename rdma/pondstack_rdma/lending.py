"""What all lenders in software share: regions, keys, and memory that is fresh once no key of a region lives."""

import importlib
import logging
import socket
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from pondstack.domain.errors import BadRequest, InUse, NotFound
from pondstack_rdma.acceptor import Server
from pondstack_rdma.base import Lender
from pondstack_rdma.bounds import check_bounds
from pondstack_rdma.errors import RevokeFailed, TransportGone
from pondstack_rdma.keyring import Keyring
from pondstack_rdma.model import Key, ReadableBuffer, Region, Ticket

LOG = logging.getLogger(__name__)
PAGE_BYTES = 4096
_WATCH_SECONDS = 0.05
"""So long memory cannot be given back at most, because it is being watched."""


class Memory(Protocol):
    """Memory of one region; zeros at first."""

    @property
    def view(self) -> memoryview:
        """All of it, writable."""

    @property
    def locked(self) -> bool:
        """Whether the kernel keeps it in RAM."""

    def close(self) -> None:
        """Give it back to the host; idempotent."""


M = TypeVar("M", bound=Memory)


def _native() -> Callable[[memoryview, bytes, float, int], bool] | None:
    """Return `watch` of rdma/native/watch.c; None where it was not built."""
    try:
        made: Callable[[memoryview, bytes, float, int], bool] = importlib.import_module("pondstack_rdma._native").watch
    except ImportError:
        return None
    return made


_WATCH = _native()


class SoftwareLender(Lender, Generic[M]):
    """A lender whose keys are checked by software. Its server's threads call `_check`, under `_lock`."""

    def __init__(self, driver: str, name: str, keyring: Keyring) -> None:
        self._driver = driver
        self._name = name
        self._keyring = keyring
        self._lock = threading.RLock()
        self._watching = threading.Lock()  # taken under the other one, or alone
        self._regions: dict[int, Region] = {}
        self._memory: dict[int, M] = {}
        self._links: dict[str, set[socket.socket]] = {}
        self._last = 0
        self._closed = False

    @property
    @abstractmethod
    def _server(self) -> Server:
        """What answers the borrowers."""

    @abstractmethod
    def _allocate(self, size_bytes: int) -> M:
        """Take memory of the host; raises RegistrationFailed."""

    def admit(self, borrower: str) -> Ticket:
        """Return what `borrower` connects with."""
        with self._lock:
            self._check_open()
            return Ticket(self._driver, self._server.address, borrower, self._keyring.admit(borrower))

    def register(self, size_bytes: int) -> Region:
        """Take memory of this host; raises BadRequest, RegistrationFailed."""
        if size_bytes <= 0 or size_bytes % PAGE_BYTES:
            raise BadRequest(f"a region is a multiple of {PAGE_BYTES} bytes, not {size_bytes}")
        with self._lock:
            self._check_open()
            memory = self._allocate(size_bytes)
            self._last += 1
            region = Region(self._last, size_bytes, memory.locked)
            self._regions[region.number], self._memory[region.number] = region, memory
            return region

    def export(self, region: Region, borrower: str) -> Key:
        """Make a key of a region; raises NotFound, RegistrationFailed, RevokeFailed."""
        with self._lock:
            self._memory_of(region)
            if ended := [key.number for key in self._keyring.refused_of(region.number)]:
                raise RevokeFailed(
                    f"the keys {ended} of region {region.number} were revoked, and the device did not end them; look "
                    "at the kernel's log, and restart the lender once nobody needs its other buffers"
                )
            self._keyring.admit(borrower)
            key = self._keyring.add(region.number, region.size_bytes, borrower)
            try:
                self._key_made(key)
            except BaseException:
                self._keyring.remove(key)
                raise
            return key

    def locate(self, key: Key) -> Key:
        """Return a live key with the location of its region; raises AccessRefused."""
        with self._lock:
            return replace(key, location=self._location(key, self._check(key.borrower, key)))

    def revoke(self, key: Key) -> bool:
        """End a key, and with the last one of its region the memory; raises RevokeFailed."""
        with self._lock:
            self._check_open()
            region = self._keyring.refuse(key)
            if region is None:
                return False
            self._end(key, region)
            return True

    def dismiss(self, borrower: str) -> bool:
        """End a borrower; raises RevokeFailed."""
        with self._lock:
            self._check_open()
            known = self._keyring.dismiss(borrower)
            keys = [(key, self._keyring.refuse(key)) for key in self._keyring.keys_for(borrower)]
            self._hang_up(borrower)
            for key, region in keys:
                assert region is not None
                self._end(key, region)
            self._forget(borrower)
            return known

    def deregister(self, region: Region) -> bool:
        """Give a region back; raises InUse."""
        with self._lock:
            self._check_open()
            if self._regions.get(region.number) != region:
                return False
            if keys := [key.number for key in self._keyring.keys_of(region.number)]:
                raise InUse(f"the keys {keys} of region {region.number} live; revoke them first")
            del self._regions[region.number]
            self._drop(region.number)
            return True

    def load(self, region: Region, offset: int, size: int) -> bytes:
        """Read a region here."""
        check_bounds(offset, size, region.size_bytes)
        with self._lock, self._memory_of(region).view[offset : offset + size] as part:
            return bytes(part)

    def store(self, region: Region, offset: int, data: ReadableBuffer) -> None:
        """Write a region here."""
        with memoryview(data).cast("B") as source:
            check_bounds(offset, source.nbytes, region.size_bytes)
            with self._lock, self._memory_of(region).view[offset : offset + source.nbytes] as part:
                part[:] = source

    def watch(self, region: Region, offset: int, known: bytes, pause_seconds: float, looks: int) -> bool:
        """Wait here until bytes of a region are not what is known, for the most part without Python."""
        if _WATCH is None:
            return super().watch(region, offset, known, pause_seconds, looks)
        check_bounds(offset, len(known), region.size_bytes)
        at_once = max(int(_WATCH_SECONDS / pause_seconds), 1)
        for done in range(0, looks, at_once):
            with self._lock:
                memory = self._memory_of(region)
                self._watching.acquire()
            try:
                with memory.view[offset : offset + len(known)] as part:
                    if _WATCH(part, known, pause_seconds, min(at_once, looks - done)):
                        return True
            finally:
                self._watching.release()
        return False

    def close(self) -> None:
        """End all keys, then the server, then give all memory back."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for key in self._keyring:
                region = self._keyring.refuse(key)
                assert region is not None
                try:
                    self._end(key, region)
                except RevokeFailed as error:
                    # Its memory stays mapped: it goes with the process, when the kernel closes the device.
                    LOG.error("%s", error)
            for number in list(self._memory):
                if not self._keyring.keys_of(number):
                    self._drop(number)
            self._regions.clear()
        self._server.close()

    def _location(self, key: Key, memory: M) -> Mapping[str, int]:
        """Return where the region of a live key is, as the driver's borrowers in rdma/native/links read it."""
        del key, memory
        return {}

    def _key_made(self, key: Key) -> None:
        """Let a new key in; raises RegistrationFailed."""

    def _key_ended(self, key: Key) -> None:
        """Keep an ended key out, at once; raises RevokeFailed, and is called again then."""

    def _hang_up(self, borrower: str) -> None:
        """End the links of a borrower; their threads see it."""
        for link in self._links.pop(borrower, ()):
            with suppress(OSError):  # it has hung up first
                link.shutdown(socket.SHUT_RDWR)

    def _forget(self, borrower: str) -> None:
        """Give back what is kept for a borrower without links and keys."""

    def _check(self, borrower: str, key: Key) -> M:
        """Return the memory that a borrower reaches with a key; raises AccessRefused, TransportGone."""
        self._check_open()
        return self._memory[self._keyring.check(borrower, key)]

    def _check_borrower(self, borrower: str, secret: bytes, link: socket.socket | None = None) -> None:
        """Raise WrongBorrower, TransportGone, or let a link in as that of a borrower until `_left`."""
        with self._lock:
            self._check_open()
            self._keyring.check_borrower(borrower, secret)
            if link is not None:
                self._links.setdefault(borrower, set()).add(link)

    def _left(self, link: socket.socket) -> None:
        """Note that a link has ended, whether it was let in or not."""
        with self._lock:
            for borrower, links in list(self._links.items()):
                links.discard(link)
                if not links:
                    del self._links[borrower]

    def _memory_of(self, region: Region) -> M:
        self._check_open()
        if self._regions.get(region.number) != region:
            raise NotFound(f"lender {self._name} has no region {region.number}; it was deregistered, or is another's")
        if region.number not in self._memory:
            self._memory[region.number] = self._allocate(region.size_bytes)
        return self._memory[region.number]

    def _end(self, key: Key, region: int) -> None:
        self._key_ended(key)
        # Last: until the device has ended it, the memory is nobody else's, and a repetition finds the key again.
        self._keyring.remove(key)
        if not self._keyring.keys_of(region):
            # Whatever a borrower still does to this memory, nobody else ever gets it.
            self._drop(region)

    def _drop(self, region: int) -> None:
        memory = self._memory.pop(region, None)
        if memory is not None:
            with self._watching:
                memory.close()

    def _check_open(self) -> None:
        if self._closed:
            raise TransportGone(f"lender {self._name} is closed")
