"""Who uses pool memory on this host: guests as root and libvirt say, anybody by the pages that he has on a node."""

import contextlib
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from pondstack_agent.host import node_pages, privileged
from pondstack_agent.host.libvirt_status import LIBVIRT, domains

PROC = Path("/proc")
_UIDS = re.compile(r"^Uid:((?:\s+\d+){4})$", re.M)


def guests(proc: Path = PROC, libvirt: Path = LIBVIRT) -> dict[str, int]:
    """Return the processes of guests, which were started with `-uuid UUID` as libvirt starts QEMU: UUID to process id.

    Anybody can start a process with such words. It is a guest when root or this agent's user has started it, or when
    libvirt says the same of it in its own `libvirt` folder.
    """
    found: dict[str, int] = {}
    of_others: set[tuple[str, int]] = set()
    for pid in _processes(proc):
        with contextlib.suppress(OSError):
            uuid = _given_uuid(proc / str(pid))
            if uuid and _is_trusted(proc / str(pid)):
                found[uuid] = pid
            elif uuid:
                of_others.add((uuid, pid))
    if of_others:
        said = _domains(libvirt)
        found |= {uuid: pid for uuid, pid in of_others if said.get(uuid) == pid}
    return found


def is_guest(pid: int, proc: Path = PROC, libvirt: Path = LIBVIRT) -> bool:
    """Tell whether a process is one of `guests`, without a look at all others."""
    process = proc / str(pid)
    try:
        uuid = _given_uuid(process)
        return bool(uuid) and (_is_trusted(process) or _domains(libvirt).get(uuid) == pid)
    except OSError:
        return False  # it has ended


def has_ended(pid: int, proc: Path = PROC) -> bool:
    """Tell whether a process is gone, or has no memory any more and waits for its parent."""
    try:
        return (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return True


def pages_on_node(node: int, proc: Path = PROC) -> dict[int, int]:
    """Return how many pages each process has on a node of the host: process id to pages.

    The kernel walks each process's page tables for this, so it is asked only when something is not on record.
    """
    if proc == PROC and privileged.context.elsewhere:
        return dict(privileged.pages_on_node(node))
    return node_pages.by_process(node, proc)


def _domains(folder: Path) -> dict[str, int]:
    """Return what libvirt says, in files that are root's."""
    if folder == LIBVIRT and privileged.context.elsewhere:
        return dict(privileged.domains())
    return domains(folder)


def _given_uuid(process: Path) -> str:
    words = (process / "cmdline").read_bytes().split(b"\0")
    given = [value for option, value in itertools.pairwise(words) if option in (b"-uuid", b"--uuid")]
    return given[-1].decode(errors="replace") if given else ""


def _is_trusted(process: Path) -> bool:
    """Tell whether all user ids of a process are root's or ours: of a set-user-id program only some are."""
    found = _UIDS.search((process / "status").read_text())
    return found is not None and {int(uid) for uid in found[1].split()} <= {0, os.geteuid()}


def _processes(proc: Path) -> Iterator[int]:
    return (int(name) for name in os.listdir(proc) if name.isdigit())
