"""What making the partition needs root for, by oslo.privsep. An agent that is root does it without a helper process.

Each returns '' or what was said instead of raising it: what crosses privsep are plain values.
"""

import os
import re
import subprocess
from pathlib import Path

from oslo_privsep import capabilities, priv_context

from pondstack_agent.host import sysfs_write

context = priv_context.PrivContext(
    "pondstack_agent",
    cfg_section="partition_privsep",
    pypath=f"{__name__}.context",
    # Cgroups, units of systemd and memory policies of other users' processes.
    capabilities=[capabilities.CAP_DAC_OVERRIDE, capabilities.CAP_SYS_ADMIN, capabilities.CAP_SYS_PTRACE],
)
if os.geteuid() == 0:
    context.set_client_mode(False)

DROP_IN = "60-pondstack-partition.conf"
RUNTIME = "50-AllowedMemoryNodes.conf"
"""What `systemctl set-property --runtime` calls its own."""
_CGROUP = re.compile(r"/sys/fs/cgroup/(?:[^/]+/)*(?:cpuset\.mems|cgroup\.subtree_control)")
_DROP_IN = re.compile(
    rf"/etc/systemd/system/[^/]+\.d/{re.escape(DROP_IN)}|/run/systemd/system\.control/[^/]+\.d/{re.escape(RUNTIME)}"
)
_VERBS = frozenset({"daemon-reload", "set-property", "try-restart"})
_SECONDS = 120.0


def _check(pattern: re.Pattern[str], path: str) -> None:
    if not pattern.fullmatch(path) or ".." in path.split("/"):
        raise ValueError(f"{path} is no part of the partition")


@context.entrypoint
def write_cgroup(path: str, text: str) -> str:
    """Write cpuset.mems or cgroup.subtree_control of a cgroup; return '' or what the kernel said."""
    _check(_CGROUP, path)
    return sysfs_write.write(path, text)


@context.entrypoint
def put_drop_in(path: str, text: str) -> str:
    """Write a drop-in of a unit; return '' or what is wrong."""
    _check(_DROP_IN, path)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
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
    if words[0] not in _VERBS:
        raise ValueError(f"systemctl {words[0]} is no part of the partition")
    try:
        done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"systemctl: {error}"
    return "" if done.returncode == 0 else done.stderr.strip() or f"systemctl ended with {done.returncode}"


@context.entrypoint
def numa_maps(pid: int) -> str:
    """Return the memory policies of a process as the kernel shows them, '' when it has ended."""
    try:
        return Path("/proc", str(int(pid)), "numa_maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
