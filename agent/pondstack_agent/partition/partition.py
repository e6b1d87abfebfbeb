"""Makes the partition, looks whether it holds, and undoes it.

Three parts: what is no guest is confined by cpusets; who starts guests has a memory policy of local nodes, which each
guest inherits; guests without pool memory get a cpuset, by our virt driver or, where they ran before, from here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from oslo_config import cfg
from oslo_log import log

from pondstack.domain.errors import DeviceFailed
from pondstack_agent.host import cgroup, memory_users
from pondstack_agent.partition import cgroups, processes, units
from pondstack_agent.partition.host import Host

LOG = log.getLogger(__name__)

_LOOKS, _PAUSE_SECONDS = 50, 0.2
"""How long systemd may take to apply what it has read."""


class Kind(StrEnum):
    """Whose memory may land on the pool."""

    SYSTEM = "system"
    DAEMON = "daemon"
    GUEST = "guest"


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that may have memory of a pool node and was not given any; `nodes`: its nodes, '' for any."""

    kind: Kind
    name: str
    nodes: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name} may have memory of {self.nodes or 'any'} node"


class Partition:
    """One host's. `system`: cgroups of what is no guest; `daemons`: services that start guests (`libvirtd.service`)."""

    def __init__(self, system: Sequence[str], daemons: Sequence[str], host: Host | None = None) -> None:
        self._system, self._daemons, self._host = system, daemons, host or Host()

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Self:
        """Build it over this machine, from group [cxl]."""
        return cls(conf.cxl.system_cgroups, conf.cxl.guest_units)

    def local(self) -> str:
        """Return the nodes of local memory, as the kernel lists them."""
        return self._host.local()

    def make(self, *, restart: bool = False) -> list[str]:
        """Make what is missing and return what was changed; raises DeviceFailed.

        `restart`: also restart the services that start guests and do not have their policy yet. Guests run on.
        """
        host = self._host
        open_groups = [name for name in self._system if not cgroups.confined(host, name)]
        if not host.has_systemd():
            for name in open_groups:
                cgroups.confine(host, host.cgroups / name, host.local())
            return open_groups
        wanted = {units.of_cgroup(name): units.confined(units.of_cgroup(name), host.local()) for name in open_groups}
        wanted |= {unit: units.starts_guests(host.local()) for unit in self._daemons}
        changed = [unit for unit, text in wanted.items() if units.put(host, unit, text)]
        if changed:
            self._reload()
        for name in open_groups:
            units.apply(host, units.of_cgroup(name), host.local())
        self._await(open_groups)
        for unit in [item.name for item in self._open_daemons()] if restart else []:
            if trouble := host.systemctl("try-restart", unit):
                raise DeviceFailed(f"{unit} does not restart: {trouble}; see `journalctl -u {unit}`")
            changed.append(f"{unit} (restarted)")
        return changed

    def confine_guests(self, holders: Collection[str]) -> list[str]:
        """Bind running guests that hold no pool memory and may have some to local nodes; return them.

        `holders`: the consumers with pool memory, or about to have some.
        """
        done = []
        for consumer, pid in self._open_guests(holders).items():
            folder = self._own_cgroup(pid)
            if folder is not None:
                LOG.info(
                    "Guest %s has no pool memory: it is bound to nodes %s from now on", consumer, self._host.local()
                )
                cgroups.confine(self._host, folder, self._host.local())
                done.append(consumer)
        return done

    def gaps(self, holders: Collection[str] = ()) -> list[Gap]:
        """Return what may have memory of a pool node and was not given any."""
        open_groups = [name for name in self._system if not cgroups.confined(self._host, name)]
        return [
            *(Gap(Kind.SYSTEM, name, cgroups.nodes(self._host, name)) for name in open_groups),
            *self._open_daemons(),
            *(Gap(Kind.GUEST, consumer) for consumer in self._open_guests(holders)),
        ]

    def unbound_holders(self, holders: Mapping[str, int]) -> list[str]:
        """Return the running guests with pool memory whose other memory may land there, too. `holders`: to their node.

        They were started before the partition was made, and it is so until they are started again.
        """
        guests = memory_users.guests(self._host.proc, self._host.libvirt)
        pairs = [(consumer, guests[consumer], node) for consumer, node in holders.items() if consumer in guests]
        return [consumer for consumer, pid, node in pairs if not processes.bound(self._host, pid, {node})]

    def undo(self) -> list[str]:
        """Remove all that `make` made, and return what was changed; guests that run keep what they have."""
        host = self._host
        changed = units.ours(host)
        for unit in changed:
            units.remove(host, unit)
        if changed:
            self._reload()
        if not host.has_systemd():
            changed = [name for name in self._system if cgroups.nodes(host, name) == host.local()]
            for name in changed:
                cgroups.confine(host, host.cgroups / name, "")
        return changed

    def _reload(self) -> None:
        if trouble := self._host.systemctl("daemon-reload"):
            raise DeviceFailed(f"systemd does not read its units again: {trouble}; see `systemctl status`")

    def _await(self, names: Sequence[str]) -> None:
        """Read back until systemd has applied what it read; what is open after that, `gaps` has."""
        for _ in range(_LOOKS):
            if all(cgroups.confined(self._host, name) for name in names):
                return
            self._host.wait(_PAUSE_SECONDS)

    def _open_daemons(self) -> list[Gap]:
        programs = ((unit, unit.removesuffix(".service")) for unit in self._daemons)
        running = ((unit, pid) for unit, name in programs for pid in processes.of_program(self._host, name))
        return [Gap(Kind.DAEMON, unit) for unit, pid in running if not processes.bound(self._host, pid)]

    def _open_guests(self, holders: Collection[str]) -> dict[str, int]:
        """Return guests that hold nothing, are bound to nothing, and have no backend on the pool off the record."""
        others = {
            name: pid
            for name, pid in memory_users.guests(self._host.proc, self._host.libvirt).items()
            if name not in holders
        }
        return {name: pid for name, pid in others.items() if not self._is_closed(pid)}

    def _is_closed(self, pid: int) -> bool:
        return (
            processes.in_cpuset(self._host, pid)
            or processes.bound(self._host, pid)
            or processes.has_backend(self._host, pid)
        )

    def _own_cgroup(self, pid: int) -> Path | None:
        """Return the cgroup of a guest and of nothing else, None without one."""
        try:
            inside = cgroup.own_group((self._host.proc / str(pid) / "cgroup").read_text())
            folder = self._host.cgroups / inside.lstrip("/")
            shared = folder == self._host.cgroups or set((folder / "cgroup.procs").read_text().split()) - {str(pid)}
        except OSError:
            return None
        return None if shared else folder
