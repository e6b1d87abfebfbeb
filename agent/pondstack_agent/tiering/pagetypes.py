"""The mappings of a process by type of page: anonymous, file, tmpfs (shared memory too), from /proc/PID/smaps."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pondstack_agent.host import smaps

ANON, FILE, TMPFS, MIXED, HUGETLB = "anon", "file", "tmpfs", "mixed", "hugetlb"
"""`mixed`: a private mapping of a file, some of whose pages have been written and are anonymous by now."""
KINDS = (ANON, FILE, TMPFS, MIXED)

_SHARED_MEMORY = ("/memfd:", "/SYSV", "/dev/zero", "[anon_shmem:")
"""Names of mappings of the kernel's own tmpfs, which is mounted nowhere."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """One mapping: byte addresses, KiB in memory, and KiB of these that were used since the bits were cleared."""

    start: int
    end: int
    kind: str
    resident_kib: int
    referenced_kib: int


def tmpfs_devices(mountinfo: str) -> frozenset[tuple[int, int]]:
    """Return the devices (major, minor) of the tmpfs that /proc/PID/mountinfo has."""
    found = set()
    for line in mountinfo.splitlines():
        fields, _, details = line.partition(" - ")
        if details.split()[:1] == ["tmpfs"]:
            major, _, minor = fields.split()[2].partition(":")
            found.add((int(major), int(minor)))
    return frozenset(found)


def mappings(text: str, tmpfs: frozenset[tuple[int, int]]) -> Iterator[Mapping]:
    """Return the mappings with pages of smaps."""
    for header, values in smaps.blocks(text):
        start, end, _, major, minor, inode, path = header.groups()
        huge = values.get("Private_Hugetlb", 0) + values.get("Shared_Hugetlb", 0)
        resident = values.get("Rss", 0)
        if huge:
            yield Mapping(int(start, 16), int(end, 16), HUGETLB, huge, 0)
        elif resident:
            device = int(major, 16), int(minor, 16)
            kind = FILE if int(inode) else ANON
            if path.startswith(_SHARED_MEMORY) or (kind == FILE and device in tmpfs):
                kind = TMPFS
            if kind != ANON and values.get("Anonymous", 0):
                kind = ANON if values["Anonymous"] == resident else MIXED
            yield Mapping(int(start, 16), int(end, 16), kind, resident, values.get("Referenced", 0))


def of_process(pid: int, proc: Path = Path("/proc")) -> list[Mapping]:
    """Return the mappings of a process now; raises OSError when it is gone or not ours to look at."""
    folder = proc / str(pid)
    return list(mappings((folder / "smaps").read_text(), tmpfs_devices((folder / "mountinfo").read_text())))
