"""What a host lacks to run the data plane, each with what to do about it."""

import os
import re
from pathlib import Path

from pondstack_rdma.data_plane import PROGRAM

LEAST_KERNEL = (5, 19)
"""Write protection of shared memory by userfaultfd."""
_SYSCTL = Path("/proc/sys/vm/unprivileged_userfaultfd")


def missing(release: str = "", sysctl: Path = _SYSCTL, program: Path = PROGRAM) -> list[str]:
    """Return what is missing, [] when nothing is. `release`: of the kernel, '' for the one that runs."""
    return [
        reason for reason in (_kernel(release or os.uname().release), _userfaultfd(sysctl), _binary(program)) if reason
    ]


def _kernel(release: str) -> str:
    found = re.match(r"(\d+)\.(\d+)", release)
    if found and (int(found[1]), int(found[2])) >= LEAST_KERNEL:
        return ""
    return f"the kernel is Linux {release}, and {'.'.join(map(str, LEAST_KERNEL))} or later is needed"


def _userfaultfd(sysctl: Path) -> str:
    try:
        value = sysctl.read_text().strip()
    except OSError as error:
        return f"the kernel has no userfaultfd ({error}): one with CONFIG_USERFAULTFD is needed"
    if value == "1":
        return ""
    return (
        "vm.unprivileged_userfaultfd is 0, and guests' processes, which are not root's, make their userfaultfd "
        "themselves: write vm.unprivileged_userfaultfd = 1 into a file of /etc/sysctl.d, and run `sysctl --system`"
    )


def _binary(program: Path) -> str:
    if os.access(program, os.X_OK):
        return ""
    return f"{program} was not built: install gcc, libjansson-dev and libssl-dev, and install pondstack again"
