"""Pool memory is for guests alone: the host's own processes are confined to local memory (Pond, section 4.2).

Pond has "a special-purpose memory partition that is only available to the hypervisor", as host agents and drivers on
pool memory keep it from going offline. Here it is cgroups: a process whose local nodes are full gets memory of the next
node, the pool's, unless the cpuset of its cgroup names local nodes alone.
"""

from collections.abc import Iterable

from pondstack_agent.drivers.cxl.preflight import Failure, failed
from pondstack_agent.drivers.cxl.sysfs import Sysfs

CGROUPS = "fs/cgroup"
HAS_CPU = "devices/system/node/has_cpu"


def check(sysfs: Sysfs, cgroups: Iterable[str]) -> None:
    """Raise HostUnusable when a cgroup (v2, by its path) that exists may have memory of nodes without CPUs."""
    for name in cgroups:
        path = f"{CGROUPS}/{name}/cpuset.mems"
        # Its own setting: what it inherits grows with each node that comes online.
        allowed = sysfs.cpus(path) if sysfs.exists(path) else set()
        if sysfs.exists(f"{CGROUPS}/{name}") and not (allowed and allowed <= sysfs.cpus(HAS_CPU)):
            nodes = sysfs.text(path) if allowed else ""
            raise failed(Failure.SYSTEM_ANYWHERE, cgroup=name, nodes=nodes or "any", local=sysfs.text(HAS_CPU))
