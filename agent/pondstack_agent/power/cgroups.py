"""Which control groups (v2) to freeze so that all stands still but a few processes. No group is frozen that has one."""

from collections.abc import Collection, Iterator
from pathlib import Path

FREEZE, PROCESSES, EVENTS = "cgroup.freeze", "cgroup.procs", "cgroup.events"


def freezable(root: Path, kept: Collection[int]) -> list[Path]:
    """Return the highest groups below `root` that have none of the processes `kept`, in the order to freeze them in.

    What is in a group with one of them goes on too: those that are to go on should have a group of their own.
    """
    return list(_freezable(root, frozenset(kept)))


def is_frozen(group: Path) -> bool:
    """Return whether all processes of a group that was told to freeze stand still, or there are none any more."""
    try:
        return "frozen 1" in (group / EVENTS).read_text().splitlines()
    except OSError:
        return True


def _freezable(group: Path, kept: frozenset[int]) -> Iterator[Path]:
    for child in sorted(item for item in group.iterdir() if item.is_dir()):
        if not (child / FREEZE).exists():
            continue
        if kept.isdisjoint(_processes(child)):
            yield child
        else:
            yield from _freezable(child, kept)


def _processes(group: Path) -> Iterator[int]:
    """Yield the processes of a group and of those below it."""
    for file in group.rglob(PROCESSES):
        try:
            yield from map(int, file.read_text().split())
        except OSError:
            # A threaded group does not list processes, and one that was removed meanwhile has none.
            continue
