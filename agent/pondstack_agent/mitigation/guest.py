"""A running guest as a process of the host: its pages, and the cgroup that decides where later ones come from."""

from dataclasses import dataclass
from pathlib import Path

from pondstack.domain.errors import HostUnusable, NotFound
from pondstack_agent.host import cpuset, memory_users, numa
from pondstack_agent.host.cgroup import own_group
from pondstack_agent.host.numa import Region
from pondstack_agent.mitigation import privileged


@dataclass(frozen=True, slots=True)
class Guest:
    """One QEMU process."""

    consumer_uuid: str
    pid: int

    def regions(self) -> list[Region]:
        """Return its mappings; none when it has ended."""
        return numa.parse(*privileged.read_maps(self.pid))

    def regions_on(self, node: int) -> list[Region]:
        """Return its mappings with pages on a node."""
        maps, numa_maps = privileged.read_maps(self.pid)
        return numa.parse(maps, numa_maps, node)

    def numa_maps(self) -> str:
        """Return what the kernel says of its pages and policies; '' when it has ended."""
        return privileged.read_numa_maps(self.pid)

    def uses(self, numa_maps: str, node: int) -> bool:
        """Tell whether it has pages on a node, or may get some."""
        return numa.uses(numa_maps, node) and numa.uses(numa_maps, node, cpuset.allowed(self.pid))


def find(consumer_uuid: str) -> Guest:
    """Return the process of a guest (`-uuid`); raises NotFound."""
    pid = memory_users.guests().get(consumer_uuid)
    if pid is None:
        raise NotFound(f"no process of this host was started with -uuid {consumer_uuid}; its guest does not run here")
    return Guest(consumer_uuid, pid)


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The cgroup v2 of one guest and of nothing else."""

    folder: Path

    def allowed(self) -> set[int]:
        """Return the nodes that the guest may use now."""
        return numa.parse_list((self.folder / "cpuset.mems.effective").read_text())

    def bind(self, nodes: tuple[int, ...]) -> None:
        """Let the guest use these nodes only: pages move, policies are rewritten; raises HostUnusable."""
        trouble = privileged.bind_cgroup(str(self.folder), ",".join(map(str, nodes)))
        if trouble:
            raise HostUnusable(f"the kernel refuses nodes {nodes} for {self.folder} ({trouble}); see its cpuset.mems")


def cgroup_of(guest: Guest, proc: Path = memory_users.PROC, root: Path = Path(privileged.CGROUPS)) -> Cgroup:
    """Return the guest's cgroup: that of its machine, or its own; raises HostUnusable when it cannot be bound."""
    inside = own_group((proc / str(guest.pid) / "cgroup").read_text())
    folder = root / inside.lstrip("/")
    if folder == root:
        raise HostUnusable(
            f"guest {guest.consumer_uuid} is in no cgroup of its own; start it by libvirt with cgroup v2"
        )
    if not (folder / "cpuset.mems").exists():
        raise HostUnusable(f"{folder} has no cpuset; add +cpuset to cgroup.subtree_control of the groups above it")
    try:
        others = {int(pid) for pid in (folder / "cgroup.procs").read_text().split()} - {guest.pid}
    except OSError as error:
        raise HostUnusable(f"cannot read the processes of {folder} ({error.strerror}); see its cgroup.type") from None
    if others:
        raise HostUnusable(
            f"{folder} holds other processes than guest {guest.consumer_uuid} ({sorted(others)[:4]}), whose memory "
            "would move, too; give the guest a cgroup of its own"
        )
    return Cgroup(folder)
