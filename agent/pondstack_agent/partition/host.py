"""What the partition reads and changes of a host, below a root, so that a tree of files will do for tests."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pondstack.domain.errors import DeviceFailed
from pondstack_agent.host.libvirt_status import LIBVIRT
from pondstack_agent.host.numa import parse_list
from pondstack_agent.partition import privileged

_HAS_CPU = "sys/devices/system/node/has_cpu"


@dataclass(frozen=True)
class Host:
    """The ways in which the host is changed are fields; each answers '' or what was said."""

    root: Path = Path("/")
    write_cgroup: Callable[[str, str], str] = privileged.write_cgroup
    put_drop_in: Callable[[str, str], str] = privileged.put_drop_in
    remove_drop_in: Callable[[str], str] = privileged.remove_drop_in
    systemctl: Callable[..., str] = privileged.systemctl
    numa_maps: Callable[[int], str] = privileged.numa_maps
    wait: Callable[[float], None] = time.sleep

    @property
    def proc(self) -> Path:
        """The processes."""
        return self.root / "proc"

    @property
    def libvirt(self) -> Path:
        """The folder in which libvirt keeps what runs."""
        return self.root / LIBVIRT.relative_to("/")

    @property
    def cgroups(self) -> Path:
        """The cgroups, of version 2."""
        return self.root / "sys/fs/cgroup"

    @property
    def drop_ins(self) -> Path:
        """The folder of systemd where operators change units."""
        return self.root / "etc/systemd/system"

    @property
    def runtime_drop_ins(self) -> Path:
        """The folder of systemd for what was set until the next boot."""
        return self.root / "run/systemd/system.control"

    def has_systemd(self) -> bool:
        """Tell whether systemd runs this host (sd_booted(3))."""
        return (self.root / "run/systemd/system").is_dir()

    def local(self) -> str:
        """Return the nodes with CPUs, whose memory is local, as the kernel lists them; raises DeviceFailed."""
        try:
            return (self.root / _HAS_CPU).read_text().strip()
        except OSError as error:
            raise DeviceFailed(f"cannot read /{_HAS_CPU} ({error.strerror}); does the kernel have NUMA?") from None

    def local_nodes(self) -> set[int]:
        """Return the nodes with CPUs as numbers."""
        return parse_list(self.local())


def must(trouble: str, what: str) -> None:
    """Raise DeviceFailed when a change was refused."""
    if trouble:
        raise DeviceFailed(f"{what}: {trouble}; make the partition by `pondstack-partition make`, as root")
