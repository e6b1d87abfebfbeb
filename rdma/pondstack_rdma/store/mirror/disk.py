"""The file of a mirror: positioned reads and writes that are whole or an OSError, and one owner at a time."""

import fcntl
import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pondstack.domain.errors import InUse
from pondstack_rdma.errors import MirrorDegraded
from pondstack_rdma.model import ReadableBuffer


class Survives(StrEnum):
    """What a page in the mirror outlives once it is durable."""

    PROCESS = "process"
    """The death of the borrower's process: it is in the kernel's hands. Enough where the VM dies with its host."""
    HOST = "host"
    """The death of the borrower's host, too: the device has said that it is stored."""


class Disk(Protocol):
    """What a mirror writes to. Each method raises OSError; after a failed `sync` nobody knows what was stored."""

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes."""

    def write(self, offset: int, data: ReadableBuffer) -> None:
        """Write all of `data`."""

    def sync(self) -> None:
        """Return once all that was written before is durable."""

    def close(self) -> None:
        """Let go of it; idempotent."""


class FileDisk:
    """A file of `size_bytes`, readable by its user only.

    `reserve` takes the space at once, so that a full file system shows at the start and not under load. Raises InUse
    while another process has the file, MirrorDegraded when there is no room for it.
    """

    def __init__(
        self, path: str | os.PathLike[str], size_bytes: int, survives: Survives = Survives.HOST, reserve: bool = True
    ) -> None:
        self._path = Path(path)
        self._sync: Callable[[int], None] | None = os.fdatasync if survives is Survives.HOST else None
        self._fd = -1
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self._fd).st_size < size_bytes:
                os.ftruncate(self._fd, size_bytes)
            if reserve:
                os.posix_fallocate(self._fd, 0, size_bytes)
            if survives is Survives.HOST:
                self._sync_folder()
        except BlockingIOError as error:
            self.close()
            raise InUse(f"another process has the mirror {self._path}; see whether its borrower still runs") from error
        except OSError as error:
            self.close()
            raise MirrorDegraded(
                f"no mirror of {size_bytes} bytes in {self._path}: {error}; make room there, or put it elsewhere"
            ) from error

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes; what lies beyond the end is zeros."""
        parts = []
        while size > 0 and (part := os.pread(self._fd, size, offset)):
            parts.append(part)
            offset, size = offset + len(part), size - len(part)
        return b"".join(parts) + bytes(size)

    def write(self, offset: int, data: ReadableBuffer) -> None:
        """Write all of `data`."""
        with memoryview(data).cast("B") as rest:
            done = 0
            while done < rest.nbytes:
                done += os.pwrite(self._fd, rest[done:], offset + done)

    def sync(self) -> None:
        """Make it durable, where that is asked for."""
        if self._sync is not None:
            self._sync(self._fd)

    def close(self) -> None:
        """Close the file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _sync_folder(self) -> None:
        os.fsync(self._fd)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)  # the name of a new file is stored there
        finally:
            os.close(folder)
