"""What moving another process's pages needs root for, by oslo.privsep. An agent that is root does it itself."""

import ctypes
import os
from array import array
from collections.abc import Sequence
from pathlib import Path

from oslo_privsep import capabilities, priv_context

context = priv_context.PrivContext(
    "pondstack_agent",
    cfg_section="mitigation_privsep",
    pypath=f"{__name__}.context",
    # Moving pages that others map too; looking into and acting on processes of other users; their cgroups.
    capabilities=[capabilities.CAP_SYS_NICE, capabilities.CAP_SYS_PTRACE, capabilities.CAP_DAC_OVERRIDE],
)
if os.geteuid() == 0:
    context.set_client_mode(False)

CGROUPS = "/sys/fs/cgroup"
_MOVE_PAGES = 279  # asm/unistd_64.h
_MOVE_ALL = 4  # linux/mempolicy.h: MPOL_MF_MOVE_ALL
_LIBC = ctypes.CDLL(None, use_errno=True)


@context.entrypoint
def read_maps(pid: int) -> tuple[str, str]:
    """Return maps and numa_maps of a process, empty when it has ended."""
    try:
        folder = Path("/proc", str(int(pid)))
        return (folder / "maps").read_text(), (folder / "numa_maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "", ""


@context.entrypoint
def move_pages(pid: int, ranges: Sequence[tuple[int, int, int]], node: int) -> str:
    """Move the pages at addresses (start, end, step) to a node; return '' or what the kernel said.

    Addresses without a page are skipped. The kernel stops a call at pages that do not move now; a later call, or
    `bind_cgroup`, gets at what comes behind them.
    """
    addresses = array("Q")
    for start, end, step in ranges:
        addresses.extend(range(start, end, step))
    count = len(addresses)
    nodes, status = array("i", [node]) * count, array("i", [0]) * count
    pointers = (ctypes.c_void_p(item.buffer_info()[0]) for item in (addresses, nodes, status))
    done = _LIBC.syscall(_MOVE_PAGES, ctypes.c_int(pid), ctypes.c_ulong(count), *pointers, ctypes.c_int(_MOVE_ALL))
    if done < 0:
        return os.strerror(ctypes.get_errno())
    return f"{done} addresses were left" if done else ""


@context.entrypoint
def bind_cgroup(folder: str, nodes: str) -> str:
    """Write cpuset.mems of a cgroup; return '' or what the kernel said.

    The kernel rewrites the memory policies of all in it, moves the pages that are elsewhere, and then returns.
    """
    if not folder.startswith(f"{CGROUPS}/") or ".." in folder.split("/"):
        raise ValueError(f"{folder} is no cgroup of a guest")
    try:
        Path(folder, "cpuset.mems").write_text(nodes)
    except OSError as error:
        return error.strerror or str(error)
    return ""
