"""One page per borrower on which the lender says which keys live, and which only the lender can write.

An access looks at the word of its key before and after, so that a revocation takes effect although no process of the
lender has a part in the access.
"""

import fcntl
import mmap
import os

from pondstack_rdma.errors import RegistrationFailed

PAGE_BYTES = 65536
WORDS = PAGE_BYTES // 8
DEAD = 0
_SEAL_FUTURE_WRITE = 0x10  # F_SEAL_FUTURE_WRITE, Linux 5.1; not in Python's fcntl yet


class ControlPage:
    """The lender's end: a word per live key that holds the key's number."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("pondstack-keys", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, PAGE_BYTES)
            self._mapping = mmap.mmap(self.fd, PAGE_BYTES)
            # From here on this mapping is the only way to write, whatever a borrower does with the descriptor.
            seals = _SEAL_FUTURE_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)
        except BaseException:
            os.close(self.fd)
            raise
        self._words = memoryview(self._mapping).cast("Q")
        self._slots: dict[int, int] = {}
        self._free = list(range(WORDS - 1, -1, -1))

    def add(self, number: int) -> None:
        """Let a key live; raises RegistrationFailed when the page is full."""
        if not self._free:
            raise RegistrationFailed(f"a borrower has {WORDS} live keys of one lender at most; revoke some")
        slot = self._free.pop()
        self._slots[number] = slot
        self._words[slot] = number

    def end(self, number: int) -> None:
        """End a key at once."""
        slot = self._slots.pop(number)
        self._words[slot] = DEAD
        self._free.append(slot)

    def slot(self, number: int) -> int:
        """Return which word is that of a live key."""
        return self._slots[number]

    def close(self) -> None:
        """Unmap and close; idempotent. Its borrowers keep their mapping."""
        if not self._mapping.closed:
            self._words.release()
            self._mapping.close()
            os.close(self.fd)


class ControlView:
    """The borrower's end. Takes no ownership of the descriptor."""

    def __init__(self, fd: int) -> None:
        self._mapping = mmap.mmap(fd, PAGE_BYTES, prot=mmap.PROT_READ)
        self._words = memoryview(self._mapping).cast("Q")

    @property
    def words(self) -> memoryview:
        """All words, for reading."""
        return self._words

    def lives(self, slot: int, number: int) -> bool:
        """Tell whether a key lives. Numbers are never used again, so that a reused word does not revive a key."""
        return bool(self._words[slot] == number)

    def close(self) -> None:
        """Unmap; idempotent."""
        self._words.release()
        self._mapping.close()
