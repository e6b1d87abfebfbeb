"""Which processes may get memory of a pool node by accident: guests and those who start them, by what the kernel says.

Of a guest with pool memory only the backends may: they name the pool's node by a policy of their own. Everything else
of it, and its page cache, goes by the policy of the process.
"""

import contextlib
import re
from collections.abc import Collection, Iterator

from pondstack_agent.host import cpuset
from pondstack_agent.host.numa import parse_list
from pondstack_agent.partition.host import Host

_POLICY = re.compile(r"^[0-9a-f]+ ([a-z][a-z ()=|]*)(?::([0-9,-]+))?(?: |$)", re.M)


def of_program(host: Host, name: str) -> Iterator[int]:
    """Return the processes of a program."""
    for folder in host.proc.glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (folder / "comm").read_text().strip() == name:
                yield int(folder.name)


def in_cpuset(host: Host, pid: int) -> bool:
    """Tell whether the cpusets of all threads of a process allow local nodes alone; True when it has ended."""
    return (cpuset.allowed(pid, host.proc) or set()) <= host.local_nodes()


def bound(host: Host, pid: int, pool_nodes: Collection[int] = ()) -> bool:
    """Tell whether each mapping of a process is bound to local nodes, or names these of the pool; True if it has ended.

    The kernel shows the policy of the process for what has none of its own.
    """
    local = host.local_nodes()
    for policy, named in _policies(host, pid):
        strict = policy.startswith("bind") and named <= local
        if not strict and not (named and named <= set(pool_nodes)):
            return False
    return True


def has_backend(host: Host, pid: int) -> bool:
    """Tell whether a process has a mapping that is for nodes of the pool alone: then somebody gave it pool memory."""
    local = host.local_nodes()
    return any(named and named.isdisjoint(local) for _, named in _policies(host, pid))


def _policies(host: Host, pid: int) -> list[tuple[str, set[int]]]:
    return [(policy, parse_list(nodes)) for policy, nodes in _POLICY.findall(host.numa_maps(pid))]
