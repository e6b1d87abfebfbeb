"""The kernel's tiering attributes as text. Reads below a root that it is told, so that a copied tree will do."""

import os
from collections.abc import Callable
from pathlib import Path

from pondstack.domain.errors import DeviceFailed
from pondstack_agent.host.numa import parse_list
from pondstack_agent.tiering import privileged

Writer = Callable[[str, str], str]
"""Writes a text to an absolute path; returns '' or what the kernel said."""


class Kernel:
    """/sys and /proc. Paths are relative to the root; what the kernel refuses raises DeviceFailed with its reason."""

    def __init__(self, root: Path = Path("/"), writer: Writer = privileged.write) -> None:
        self._root, self._writer = root, writer

    def read(self, path: str) -> str | None:
        """Return an attribute without its line end, None when this kernel has none of that name."""
        try:
            return (self._root / path).read_text().strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DeviceFailed(f"cannot read /{path} ({error.strerror}); look at the kernel's log") from None

    def write(self, path: str, text: str) -> str:
        """Write an attribute; return what the kernel has then."""
        trouble = self._writer(str(self._root / path), text)
        if trouble:
            raise DeviceFailed(f"the kernel refuses {text!r} for /{path} ({trouble})")
        return self.read(path) or ""

    def names(self, path: str) -> list[str]:
        """Return what a folder holds, sorted; nothing when it is not there."""
        try:
            return sorted(os.listdir(self._root / path))
        except FileNotFoundError:
            return []

    def numbers(self, path: str) -> frozenset[int]:
        """Return a list of numbers such as 0-3,8; empty when there is no such attribute."""
        return frozenset(parse_list(self.read(path) or ""))
