"""What libvirt keeps of the guests that run: a file of each in a folder where only root writes."""

import contextlib
import re
from pathlib import Path

LIBVIRT = Path("/run/libvirt/qemu")
_PID = re.compile(r"<domstatus [^>]*\bpid='(\d+)'")
_UUID = re.compile(r"<domain [^>]*>\s*<name>[^<]*</name>\s*<uuid>([0-9a-f-]{36})</uuid>")


def domains(folder: Path = LIBVIRT) -> dict[str, int]:
    """Return the guests of libvirt: instance UUID to process id. One may have ended: libvirt, too, may be dead.

    A process can change its command line. What is here libvirt has written when it started the guest.
    """
    found = {}
    for file in sorted(folder.glob("*.xml")):
        with contextlib.suppress(OSError):
            text = file.read_text()
            pid, uuid = _PID.search(text), _UUID.search(text)
            if pid and uuid:
                found[uuid[1]] = int(pid[1])
    return found
