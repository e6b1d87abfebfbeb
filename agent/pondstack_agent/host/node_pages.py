"""Pages of all processes of the host on one of its nodes, by what the kernel says of each (numa_maps)."""

import os
import re
from pathlib import Path


def by_process(node: int, proc: Path) -> dict[int, int]:
    """Return how many pages each process has on a node: process id to pages, those that have some."""
    pattern = re.compile(rf"\bN{node}=(\d+)")
    found = {}
    for name in filter(str.isdigit, os.listdir(proc)):
        try:
            maps = (proc / name / "numa_maps").read_text()
        except OSError:
            continue  # it ended, or has no memory of its own
        pages = sum(int(count) for count in pattern.findall(maps))
        if pages:
            found[int(name)] = pages
    return found
