"""What making the partition needs root for, by oslo.privsep. An agent that stays root does it without a helper process.

Each returns '' or what was said instead of raising it: what crosses privsep are plain values.
"""

import os
import re
import subprocess
from pathlib import Path

from oslo_privsep import capabilities

from pondstack_agent.host import memory_users, sysfs_write
from pondstack_agent.privilege.context import Context

# Memory policies of other users' processes. Cgroups and drop-ins of units are root's, and systemd obeys root.
context = Context("partition", __name__, [capabilities.CAP_SYS_PTRACE])

DROP_IN = "60-pondstack-partition.conf"
RUNTIME = "50-AllowedMemoryNodes.conf"
"""What `systemctl set-property --runtime` calls its own."""
_CGROUP = re.compile(r"/sys/fs/cgroup/(?:[^/]+/)*(?:cpuset\.mems|cgroup\.subtree_control)")
_DROP_IN = re.compile(
    rf"/etc/systemd/system/[^/]+\.d/{re.escape(DROP_IN)}|/run/systemd/system\.control/[^/]+\.d/{re.escape(RUNTIME)}"
)
_NODES = r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*"
_CGROUP_TEXT = re.compile(rf"{_NODES}|\n|\+cpuset")
_DROP_IN_TEXT = re.compile(
    rf"(?:#.*\n)?\[(?:Slice|Scope|Service)\]\n(?:AllowedMemoryNodes={_NODES}\n|NUMAPolicy=bind\nNUMAMask={_NODES}\n)"
)
_UNIT = r"[A-Za-z0-9@_:\\][A-Za-z0-9@_:.\\-]*\.(?:service|slice|scope)"
_COMMAND = re.compile(
    rf"daemon-reload|try-restart {_UNIT}|set-property --runtime {_UNIT} AllowedMemoryNodes=(?:{_NODES})?"
)
_STARTER = re.compile(r"libvirtd|virt[a-z]+d")
"""Programs that start guests, and hand their memory policy on."""
_SECONDS = 120.0


_FOLDER_MODE, _FILE_MODE = 0o755, 0o644
"""Said, as processes of oslo.privsep take no rights from what they make: others could write a command into a unit."""


def _of_root(path: str, flags: int) -> int:
    return os.open(path, flags, _FILE_MODE)


def _check(pattern: re.Pattern[str], text: str) -> None:
    if not pattern.fullmatch(text) or ".." in text.split("/"):
        raise ValueError(f"{text!r} is no part of the partition")


@context.entrypoint
def write_cgroup(path: str, text: str) -> str:
    """Write cpuset.mems or cgroup.subtree_control of a cgroup; return '' or what the kernel said."""
    _check(_CGROUP, path)
    _check(_CGROUP_TEXT, text)
    return sysfs_write.write(path, text)


@context.entrypoint
def put_drop_in(path: str, text: str) -> str:
    """Write a drop-in of a unit; return '' or what is wrong."""
    _check(_DROP_IN, path)
    _check(_DROP_IN_TEXT, text)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        with open(path, "w", opener=_of_root) as file:
            file.write(text)
    except OSError as error:
        return error.strerror or str(error)
    return ""


@context.entrypoint
def remove_drop_in(path: str) -> str:
    """Remove a drop-in of a unit, and its folder when nothing else is in it; return '' or what is wrong."""
    _check(_DROP_IN, path)
    try:
        Path(path).unlink(missing_ok=True)
        if Path(path).parent.is_dir() and not os.listdir(Path(path).parent):
            Path(path).parent.rmdir()
    except OSError as error:
        return error.strerror or str(error)
    return ""


@context.entrypoint
def systemctl(*words: str) -> str:
    """Have systemd read its units again, set a property, or restart a service that runs; return '' or what it said."""
    _check(_COMMAND, " ".join(words))
    try:
        done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"systemctl: {error}"
    return "" if done.returncode == 0 else done.stderr.strip() or f"systemctl ended with {done.returncode}"


@context.entrypoint
def numa_maps(pid: int) -> str:
    """Return the memory policies of a guest, or of who starts some, as the kernel shows them; '' when it has ended."""
    try:
        process = Path("/proc", str(int(pid)))
        if not (memory_users.is_guest(pid) or _STARTER.fullmatch((process / "comm").read_text().strip())):
            if memory_users.has_ended(pid):
                return ""
            raise ValueError(f"process {pid} is no part of the partition")
        return (process / "numa_maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
