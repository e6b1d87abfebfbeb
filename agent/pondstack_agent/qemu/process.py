"""What /proc says of a guest's process beside its memory."""

import contextlib
import os
import re
from pathlib import Path

from pondstack_agent.host.memory_users import PROC

NOT_ALLOWED = "the agent may not look into the guest's process: run it as root"

_VCPU = re.compile(r"(CPU \d+|ALL CPUs)/(KVM|TCG|HVF)")
"""QEMU's names with debug-threads=on, which libvirt always sets."""


def under_kvm(pid: int, proc: Path = PROC) -> bool:
    """Return whether a guest runs under KVM; raises OSError."""
    folder = proc / str(pid) / "fd"
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(folder / name) == "anon_inode:kvm-vm":
                return True
    return False


def vcpu_threads(pid: int, proc: Path = PROC) -> tuple[int, ...]:
    """Return the threads that run a guest's vCPUs; raises OSError."""
    found = []
    folder = proc / str(pid) / "task"
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if _VCPU.fullmatch((folder / name / "comm").read_text().strip()):
                found.append(int(name))
    return tuple(sorted(found))
