"""Reads what confines the data plane and guests' processes on this host: the facts that denials are decided from."""

import socket
import struct
from pathlib import Path

from pondstack_agent.data_plane.client import SOCKET
from pondstack_agent.data_plane.denials import HostFacts, ProcessFacts, guest_denials, host_denials
from pondstack_agent.data_plane.selinux import SelinuxPolicy
from pondstack_agent.helper.unix_socket import connect

_CREDENTIALS = struct.Struct("3i")
RULES = (
    "abstractions/base",
    "abstractions/base.d/*",
    "abstractions/libvirt-qemu",
    "abstractions/libvirt-qemu.d/*",
    "local/abstractions/libvirt-qemu",
    "libvirt/TEMPLATE.qemu",
)
"""Below /etc/apparmor.d: where the profile of each guest of libvirt has its rules from, for all distributions."""


class Confinement:
    """Implements denials.Denials for the data plane of a folder. `seconds`: how long its socket may take.

    `root`: where the host's /proc and /etc are.
    """

    def __init__(
        self, folder: Path, seconds: float, root: Path = Path("/"), selinux: SelinuxPolicy | None = None
    ) -> None:
        self._folder, self._seconds, self._root = folder, seconds, root
        self._selinux = SelinuxPolicy(root) if selinux is None else selinux

    def __call__(self, guest: int | None) -> list[str]:
        """Return what denies the data plane a guest's process; of a process that has ended, what denies it any."""
        host = self.host()
        found = self.process(guest) if guest is not None else None
        if found is None:
            return host_denials(host)
        denied = self._selinux.denied(host.plane.label, found.label) if host.plane else []
        return guest_denials(host, found, denied)

    def host(self) -> HostFacts:
        """Read the facts of the host."""
        scope = self._read("proc/sys/kernel/yama/ptrace_scope")
        plane = self._plane()
        return HostFacts(
            ptrace_scope=int(scope) if scope.isdigit() else None,
            unprivileged_userfaultfd=self._read("proc/sys/vm/unprivileged_userfaultfd") == "1",
            plane=self.process(plane) if plane else None,
            rules=self._rules(),
        )

    def process(self, pid: int) -> ProcessFacts | None:
        """Read the facts of a process; None when it has ended."""
        lines = self._read(f"proc/{pid}/status").splitlines()
        status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if "CapEff" not in status:
            return None
        label = self._read(f"proc/{pid}/attr/current").rstrip("\0")
        return ProcessFacts(pid, int(status["CapEff"], 16), label, int(status.get("TracerPid", "0")))

    def _plane(self) -> int | None:
        """Return the process that listens on the data plane's socket, None for none, or one out of sight."""
        try:
            with connect(self._folder, SOCKET, self._seconds) as link:
                data = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:
            return None
        return int(_CREDENTIALS.unpack(data)[0]) or None

    def _rules(self) -> str | None:
        folder = self._root / "etc/apparmor.d"
        if not (folder / RULES[0]).exists():
            return None  # the host's own /etc is out of sight
        try:
            return "\n".join(path.read_text(errors="replace") for name in RULES for path in sorted(folder.glob(name)))
        except OSError:
            return None

    def _read(self, path: str) -> str:
        try:
            return (self._root / path).read_text().strip()
        except OSError:
            return ""
