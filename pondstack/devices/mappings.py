"""Which ranges of a file are mapped by the processes of this host, as the kernel tells.

Who is not root sees only its own user's processes.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

FileId = tuple[int, int]
"""Device number and inode: the same for every name and mount of a file."""

PROC = Path("/proc")


def file_id(path: str | os.PathLike[str]) -> FileId:
    """Return the identity of a file; raises OSError."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def mapped_ranges(files: Iterable[FileId], proc: Path = PROC) -> dict[FileId, list[range]]:
    """Return the byte ranges of each of `files` that any process maps now.

    All of /proc is read once, whatever the number of files. Processes that end meanwhile map nothing any more.
    """
    found: dict[FileId, list[range]] = {file: [] for file in files}
    if found:
        inodes = {str(inode).encode() for _, inode in found}
        for line in _lines(proc):
            fields = line.split(maxsplit=5)
            if len(fields) >= 5 and fields[4] in inodes:
                major, minor = (int(part, 16) for part in fields[3].split(b":"))
                wanted = found.get((os.makedev(major, minor), int(fields[4])))
                if wanted is not None:
                    first, last = (int(part, 16) for part in fields[0].split(b"-"))
                    offset = int(fields[2], 16)
                    wanted.append(range(offset, offset + last - first))
    return found


def is_mapped(path: str, proc: Path = PROC) -> bool:
    """Tell whether any process maps something by a path, as its own folders have it."""
    name = path.encode()
    found = (line.split(maxsplit=5) for line in _lines(proc))
    return any(len(fields) == 6 and fields[5].removesuffix(b" (deleted)") == name for fields in found)


def overlaps(ranges: Iterable[range], start: int, end: int) -> bool:
    """Tell whether one of `ranges` shares a byte with start to end - 1."""
    return any(item.start < end and start < item.stop for item in ranges)


def _lines(proc: Path) -> Iterator[bytes]:
    for name in os.listdir(proc):
        if name.isdigit():
            try:
                content = (proc / name / "maps").read_bytes()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # it ended, or is another user's
            yield from content.splitlines()
