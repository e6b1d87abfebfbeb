"""The guests of this host's own libvirt, by the files that it keeps of their processes.

For hosts that see each other's processes, as those of the rack do: there a guest that moves has the same UUID twice.
"""

import contextlib
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID

from pondstack_agent.host.memory_users import PROC


def libvirt_guests(folder: Path, proc: Path = PROC) -> Callable[[], Mapping[str, int]]:
    """Return what tells of the guests with a pid file in libvirt's `folder`: instance UUID to process id.

    A file that a dead QEMU has left names no guest, whoever has its process id now.
    """

    def running() -> dict[str, int]:
        found = {}
        for file in sorted(folder.glob("*.pid")):
            with contextlib.suppress(OSError, ValueError):
                pid = int(file.read_text())
                uuid = _uuid(proc / str(pid), file.stem)
                if uuid:
                    found[uuid] = pid
        return found

    return running


def _uuid(process: Path, name: str) -> str:
    """Return the -uuid of a process that is QEMU of the domain `name`, else ""; raises OSError, ValueError."""
    words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    options = dict(itertools.pairwise(words))
    given = options.get("-name", "").split(",")
    if name not in given and f"guest={name}" not in given:
        return ""
    return str(UUID(options["-uuid"])) if "-uuid" in options else ""
