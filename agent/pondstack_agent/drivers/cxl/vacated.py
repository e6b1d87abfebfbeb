"""Guests that run on without their pool memory: a mark in an allocation's state says who, the kernel whether it is so.

A mark is [process id, its start in ticks since boot, node]: a guest that was started again is not the one that left.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pondstack.domain.errors import InUse
from pondstack_agent.host import cpuset, numa
from pondstack_agent.host.memory_users import PROC
from pondstack_agent.partition import privileged

KEY = "vacated"


def mark(consumer_uuid: str, pid: int, node: int, proc: Path = PROC) -> dict[str, Any]:
    """Return the mark of a guest that left a node; raises InUse while it has pages there, or a policy that names it."""
    if uses(pid, node, proc):
        raise InUse(f"guest {consumer_uuid} still uses node {node} of this host; mitigate it again")
    return {KEY: [pid, _started(pid, proc), node]}


def of(state: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the mark in a state, to go with the next state."""
    return {KEY: state[KEY]} if state and KEY in state else {}


def runs_on(pid: int | None, state: Mapping[str, Any] | None, proc: Path = PROC) -> bool:
    """Tell whether a guest runs (`pid`) and did not leave its allocation."""
    if pid is None:
        return False
    former, started, node = (state or {}).get(KEY, (0, 0, 0))
    return (pid, _started(pid, proc)) != (former, started) or uses(pid, node, proc)


def uses(pid: int, node: int, proc: Path = PROC) -> bool:
    """Tell whether a process has pages on a node, or will have; False when it has ended."""
    try:
        return numa.uses(_numa_maps(pid, proc), node, cpuset.allowed(pid, proc))
    except (FileNotFoundError, ProcessLookupError):
        return False


def _numa_maps(pid: int, proc: Path) -> str:
    if proc == PROC and privileged.context.elsewhere:
        return str(privileged.numa_maps(pid))
    return (proc / str(pid) / "numa_maps").read_text()


def _started(pid: int, proc: Path) -> int:
    try:
        stat = (proc / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(stat.rpartition(")")[2].split()[19])
