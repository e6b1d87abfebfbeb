"""What SELinux denies the data plane of a guest's process, by the word of the kernel: asked before it is tried.

selinuxfs answers of two contexts and a class which permissions the loaded policy gives (Linux,
security/selinux/selinuxfs.c: sel_write_access).
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FOLDER = "sys/fs/selinux"
_ANSWER = 4096
_PERMISSIVE = 1  # SELINUX_AVD_FLAGS_PERMISSIVE: the domain is not enforced


@dataclass(frozen=True, slots=True)
class Access:
    """What one process needs of another: of the guest where `by_plane`, else by the guest, of the plane or itself."""

    kind: str
    permission: str
    by_plane: bool
    of_plane: bool = False


NEEDED = (
    Access("process", "ptrace", by_plane=True),
    Access("fd", "use", by_plane=True),
    Access("anon_inode", "ioctl", by_plane=True),
    Access("anon_inode", "create", by_plane=False),
    Access("unix_stream_socket", "connectto", by_plane=False, of_plane=True),
)
"""To attach, to take the guest's userfaultfd, to make that, and to open a swap disk's socket."""

Query = Callable[[Path, str], str]
"""Writes a question into a file and returns the answer, over one descriptor; raises OSError."""


def ask(file: Path, question: str) -> str:
    """Return what selinuxfs answers."""
    handle = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.write(handle, question.encode())
        return os.pread(handle, _ANSWER, 0).decode()
    finally:
        os.close(handle)


class SelinuxPolicy:
    """Of a host, whose files are below `root`."""

    def __init__(self, root: Path = Path("/"), query: Query = ask) -> None:
        self._folder, self._query = root / FOLDER, query

    def denied(self, plane: str, guest: str) -> list[str]:
        """Return what is denied between a data plane and a guest, by their contexts, in the words of an AVC denial.

        [] where SELinux does not enforce, or does not say.
        """
        if not self._enforces() or ":" not in plane or ":" not in guest:
            return []
        found = []
        for need in NEEDED:
            source, target = (plane, guest) if need.by_plane else (guest, plane if need.of_plane else guest)
            if self._denies(source, target, need):
                found.append(f"denied {{ {need.permission} }} scontext={source} tcontext={target} tclass={need.kind}")
        return found

    def _enforces(self) -> bool:
        return _read(self._folder / "enforce") == "1"

    def _denies(self, source: str, target: str, need: Access) -> bool:
        kind = self._folder / "class" / need.kind
        index, bit = _read(kind / "index"), _read(kind / "perms" / need.permission)
        if not index.isdigit() or not bit.isdigit():
            return False  # a policy without that class; the kernel then does as its handle_unknown says
        try:
            words = self._query(self._folder / "access", f"{source} {target} {index}").split()
            allowed, flags = int(words[0], 16), int(words[5], 16) if len(words) > 5 else 0
        except (OSError, ValueError, IndexError):
            return False
        return not flags & _PERMISSIVE and not allowed >> (int(bit) - 1) & 1


def _read(path: Path) -> str:
    try:
        return path.read_text().strip("\0\n ")
    except OSError:
        return ""
