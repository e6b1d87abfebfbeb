"""The nodes that a process may have memory of, whatever its policies say: the cpusets of its threads."""

import contextlib
import re
from pathlib import Path

from pondstack_agent.host.memory_users import PROC
from pondstack_agent.host.numa import parse_list

_ALLOWED = re.compile(r"^Mems_allowed_list:\s*(\S*)", re.M)


def allowed(pid: int, proc: Path = PROC) -> set[int] | None:
    """Return the nodes that any thread of a process is allowed, None when it has ended."""
    found: set[int] | None = None
    for thread in (proc / str(pid) / "task").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if match := _ALLOWED.search((thread / "status").read_text()):
                found = (found or set()) | parse_list(match[1])
    return found
