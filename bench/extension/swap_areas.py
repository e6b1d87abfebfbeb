"""Swap areas of this machine for a turn: zram, a file on a disk, a file on a tmpfs. All are removed again.

There is one at a time, and none beside somebody else's: what the kernel swaps where would not be known then.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.extension.interruption import deferred

SWAPS = Path("/proc/swaps")
ZRAM = Path("/sys/block/zram0")
_MIB = 2**20
_BLOCK = _MIB


class CannotMeasure(RuntimeError):
    """The machine lacks something, or has something that spoils the figures; the text says what to do."""


def areas(text: str) -> list[str]:
    """Return the swap areas that /proc/swaps names."""
    return [line.split()[0] for line in text.splitlines()[1:] if line.strip()]


def refuse_others() -> None:
    """Raise CannotMeasure when any swap is on."""
    if on := areas(SWAPS.read_text()):
        raise CannotMeasure(f"swap is on ({', '.join(on)}): swapoff it first, as the kernel may use it besides ours")


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMeasure(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextlib.contextmanager
def _on(device: str) -> Iterator[None]:
    refuse_others()
    _run("/sbin/mkswap", device)
    with Path(device).open("rb") as held:
        try:
            _run("/sbin/swapon", device)
            yield
        finally:
            with deferred():
                now = os.readlink(f"/proc/self/fd/{held.fileno()}")  # a file may have been moved
                if now in areas(SWAPS.read_text()):
                    _run("/sbin/swapoff", now)


@contextlib.contextmanager
def zram(mib: int) -> Iterator[None]:
    """Compressed memory, by the kernel's own compressor. Raises CannotMeasure where zram0 is missing or in use."""
    if not ZRAM.exists():
        raise CannotMeasure("this kernel has no zram0: modprobe zram")
    if (ZRAM / "disksize").read_text().strip() != "0":
        raise CannotMeasure("zram0 is in use: reset it, or wait for who uses it")
    try:
        (ZRAM / "disksize").write_text(f"{mib * _MIB}")
        with _on("/dev/zram0"):
            yield
    finally:
        with deferred():
            (ZRAM / "reset").write_text("1")


@contextlib.contextmanager
def _file(folder: Path, mib: int) -> Iterator[Path]:
    """Have a file whose blocks are all written: a swap file has no holes."""
    path = folder / "swap"
    try:
        with path.open("xb") as made:
            path.chmod(0o600)
            for _ in range(mib):
                made.write(bytes(_BLOCK))
        yield path
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def swap_file(folder: Path, mib: int) -> Iterator[None]:
    """A file of a disk's file system, past the page cache, as the kernel swaps to files."""
    with _file(folder, mib) as path, _on(str(path)):
        yield


@contextlib.contextmanager
def memory_file(folder: Path, mib: int) -> Iterator[None]:
    """A loop device on a tmpfs of its own, which is never swapped itself: a swap disk of memory, without a network."""
    place = folder / "memory"
    place.mkdir()
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={mib + 1}m,noswap,mode=0700", "pondstack-bench", str(place))
        try:
            with _file(place, mib) as path:
                device = _run("/sbin/losetup", "--find", "--show", str(path))
                try:
                    with _on(device):
                        yield
                finally:
                    with deferred():
                        _run("/sbin/losetup", "--detach", device)
        finally:
            with deferred():
                _run("umount", str(place))
    finally:
        place.rmdir()
