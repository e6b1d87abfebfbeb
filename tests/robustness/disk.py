"""A disk of its own for the database, so that it can be full: ext4 in a file, mounted over the loop device."""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZE_MIB = 3072
PIECES_BYTES = (64 << 20, 1 << 20, 4 << 10)


def missing() -> str:
    """Return what keeps this machine from making such a disk, "" when nothing does."""
    lacking = [
        name for name in ("mkfs.ext4", "mount", "umount") if shutil.which(name, path="/usr/sbin:/usr/bin") is None
    ]
    if lacking:
        return f"{', '.join(lacking)} not installed"
    if os.geteuid() != 0:
        return "only root mounts a disk"
    return "" if Path("/dev/loop-control").exists() else "this kernel has no loop device"


class Disk:
    """A mounted disk of `SIZE_MIB`; what is written to it is durable in its file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._image = folder.with_suffix(".img")
        self._filler = folder / "filler"

    def make(self) -> None:
        """Make the disk and mount it at its folder."""
        self.folder.mkdir(parents=True)
        with self._image.open("wb") as image:
            image.truncate(SIZE_MIB << 20)
        # No blocks are kept for root: a server that runs as root would not notice that the disk is full.
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))
        _run("mount", "-o", "loop", str(self._image), str(self.folder))
        self.folder.chmod(0o711)

    def remove(self) -> None:
        """Unmount the disk and throw it away."""
        _run("umount", str(self.folder))
        self._image.unlink()

    def fill(self) -> None:
        """Take all the room that there is."""
        with self._filler.open("ab") as filler:
            for piece in PIECES_BYTES:
                while _taken(filler.fileno(), piece):
                    pass

    def free(self) -> None:
        """Give the room back."""
        self._filler.unlink(missing_ok=True)


def _taken(handle: int, piece_bytes: int) -> bool:
    try:
        os.posix_fallocate(handle, os.fstat(handle).st_size, piece_bytes)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return False
        raise
    return True


@contextmanager
def mounted(folder: Path) -> Iterator[Disk]:
    """Make a disk, gone at the end."""
    disk = Disk(folder)
    disk.make()
    try:
        yield disk
    finally:
        disk.remove()


def _run(*argv: str) -> None:
    environment = {**os.environ, "PATH": f"/usr/sbin:/usr/bin:{os.environ.get('PATH', '')}"}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
