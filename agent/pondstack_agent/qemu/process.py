"""What /proc says of a guest's process beside its memory."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from pondstack_agent.host.memory_users import PROC

NOT_ALLOWED = "the agent may not look into the guest's process: start it as root"

_VCPU = re.compile(r"(CPU \d+|ALL CPUs)/(KVM|TCG|HVF)")
"""QEMU's names with debug-threads=on, which libvirt always sets."""
_MIGRATION = re.compile(r"live_migration|mig/src/.*")
"""Of a thread that sends a guest away: before QEMU 9.1, and since."""


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
    return tuple(sorted(thread for thread, name in _threads(pid, proc) if _VCPU.fullmatch(name)))


def is_migrating(pid: int, proc: Path = PROC) -> bool:
    """Tell whether QEMU is sending a guest to another host; raises OSError."""
    return any(_MIGRATION.fullmatch(name) for _, name in _threads(pid, proc))


def _threads(pid: int, proc: Path) -> Iterator[tuple[int, str]]:
    folder = proc / str(pid) / "task"
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield int(name), (folder / name / "comm").read_text().strip()
