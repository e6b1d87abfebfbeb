"""The cgroups of what is no guest: confined to local memory or not, and how to confine them without systemd.

A process whose local nodes are full gets memory of the next node, the pool's, unless the cpuset of its cgroup names
local nodes alone.
"""

from pathlib import Path

from pondstack_agent.host.numa import parse_list
from pondstack_agent.partition.host import Host, must

MEMS, CONTROLLERS = "cpuset.mems", "cgroup.subtree_control"


def exists(host: Host, name: str) -> bool:
    """Tell whether there is such a cgroup."""
    return (host.cgroups / name).is_dir()


def nodes(host: Host, name: str) -> str:
    """Return a cgroup's own setting, '' when it has none: what it inherits grows with each node that comes online."""
    try:
        return (host.cgroups / name / MEMS).read_text().strip()
    except FileNotFoundError:
        return ""


def confined(host: Host, name: str) -> bool:
    """Tell whether a cgroup may have memory of local nodes alone; one that is not there may have none."""
    own = parse_list(nodes(host, name))
    return not exists(host, name) or bool(own and own <= host.local_nodes())


def confine(host: Host, folder: Path, text: str) -> None:
    """Set the nodes of a cgroup, '' for those of the group above it; raises DeviceFailed."""
    above = [parent for parent in reversed(folder.parents) if parent.is_relative_to(host.cgroups)]
    for parent in above:
        if (control := parent / CONTROLLERS).exists() and "cpuset" not in control.read_text().split():
            must(host.write_cgroup(str(control), "+cpuset"), f"cpusets cannot be used below {parent}")
    must(host.write_cgroup(str(folder / MEMS), text or "\n"), f"the kernel refuses nodes {text!r} for {folder}")
