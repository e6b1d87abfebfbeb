"""Who uses pool memory on this host: guests by their command line, anybody by the pages that he has on a node."""

import contextlib
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")


def guests(proc: Path = PROC) -> dict[str, int]:
    """Return the processes that were started with `-uuid UUID`, as libvirt starts QEMU: UUID to process id."""
    found = {}
    for pid in _processes(proc):
        with contextlib.suppress(OSError):
            words = (proc / str(pid) / "cmdline").read_bytes().split(b"\0")
            for option, value in itertools.pairwise(words):
                if option in (b"-uuid", b"--uuid"):
                    found[value.decode(errors="replace")] = pid
    return found


def pages_on_node(node: int, proc: Path = PROC) -> dict[int, int]:
    """Return how many pages each process has on a node of the host: process id to pages.

    The kernel walks each process's page tables for this, so it is asked only when something is not on record.
    """
    pattern = re.compile(rf"\bN{node}=(\d+)")
    found = {}
    for pid in _processes(proc):
        try:
            maps = (proc / str(pid) / "numa_maps").read_text()
        except OSError:
            continue  # it ended, or has no memory of its own
        pages = sum(int(count) for count in pattern.findall(maps))
        if pages:
            found[pid] = pages
    return found


def _processes(proc: Path) -> Iterator[int]:
    return (int(name) for name in os.listdir(proc) if name.isdigit())
