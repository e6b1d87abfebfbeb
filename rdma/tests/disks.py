"""A disk in memory that forgets and tears what was not synced when its host crashes, and fails when it is told to."""

import errno
import os
import random

from pondstack_rdma.model import ReadableBuffer

SECTOR = 512
"""So much a disk writes as a whole."""


class MemoryDisk:
    """Every write is volatile until the next `sync`. `failing` is the error of writes and syncs, 0 for none."""

    def __init__(self, size_bytes: int, content: bytes | None = None) -> None:
        self._durable = bytearray(content or bytes(size_bytes))
        self._volatile = bytearray(self._durable)
        self._unsynced: list[tuple[int, bytes]] = []
        self.failing = 0
        self.writes_left: int | None = None
        """The writes that still succeed, if that is bounded."""
        self.syncs = 0

    def read(self, offset: int, size: int) -> bytes:
        """Return what was written last."""
        return bytes(self._volatile[offset : offset + size])

    def write(self, offset: int, data: ReadableBuffer) -> None:
        """Write, or fail."""
        self._fail()
        if self.writes_left is not None:
            if not self.writes_left:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.writes_left -= 1
        data = bytes(data)
        self._volatile[offset : offset + len(data)] = data
        self._unsynced.append((offset, data))

    def sync(self) -> None:
        """Make all durable, or fail: then, as a kernel may do, forget that anything has to be written."""
        if self.failing:
            self._unsynced.clear()
        self._fail()
        self.syncs += 1
        self._durable[:] = self._volatile
        self._unsynced.clear()

    def close(self) -> None:
        """Nothing is held."""

    def crash(self, dice: random.Random) -> "MemoryDisk":
        """Return what the next process finds: of the unsynced writes some sectors, in no order."""
        content = bytearray(self._durable)
        sectors = [
            (offset + at, data[at : at + SECTOR])
            for offset, data in self._unsynced
            for at in range(0, len(data), SECTOR)
        ]
        share = dice.choice((0.0, 0.3, 0.9, 1.0))
        for offset, part in sectors:
            if dice.random() < share:
                content[offset : offset + len(part)] = part
        return MemoryDisk(0, bytes(content))

    def crash_none(self) -> "MemoryDisk":
        """Return what the next process finds if all of this is lost but what was synced."""
        return MemoryDisk(0, bytes(self._durable))

    def _fail(self) -> None:
        if self.failing:
            raise OSError(self.failing, os.strerror(self.failing))
