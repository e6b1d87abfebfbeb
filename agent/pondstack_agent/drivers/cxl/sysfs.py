"""The kernel's attributes as typed values. Reads where it is told to, so that a copied tree will do."""

import os
from pathlib import Path

from pondstack.domain.errors import DeviceFailed
from pondstack_agent.drivers.cxl import privileged
from pondstack_agent.host.numa import parse_list

SYSFS = Path("/sys")
_MOST_BYTES = 4096  # one page: the most that an attribute has


class Sysfs:
    """A sysfs. Paths are relative to its root; whatever the kernel refuses raises DeviceFailed with its reason.

    Plain system calls: a slice takes some hundred reads.
    """

    def __init__(self, root: Path = SYSFS) -> None:
        self.root = str(root)

    def text(self, path: str) -> str:
        """Return an attribute without its line end."""
        try:
            return self._text(path).strip()
        except OSError as error:
            raise DeviceFailed(f"cannot read {self.root}/{path} ({error.strerror}); look at the kernel's log") from None

    def number(self, path: str) -> int:
        """Return a number, decimal or 0x hexadecimal."""
        return self._number(path, 0)

    def hexadecimal(self, path: str) -> int:
        """Return a number of the memory subsystem, which writes hexadecimal without 0x."""
        return self._number(path, 16)

    def cpus(self, path: str) -> set[int]:
        """Return a list of numbers such as 0-3,8."""
        return parse_list(self.text(path))

    def names(self, path: str) -> list[str]:
        """Return what a folder holds, sorted; nothing when it is not there."""
        try:
            return sorted(os.listdir(f"{self.root}/{path}"))
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        """Tell whether there is such an attribute, device or driver."""
        return os.path.exists(f"{self.root}/{path}")

    def real(self, path: str) -> Path:
        """Return the device behind the links of a path."""
        return Path(self.root, path).resolve()

    def driver(self, path: str) -> str:
        """Return the name of the driver that has a device, '' for none."""
        try:
            return os.path.basename(os.readlink(f"{self.root}/{path}/driver"))
        except FileNotFoundError:
            return ""

    def write(self, path: str, text: str) -> None:
        """Write an attribute."""
        trouble = privileged.write_attribute(f"{self.root}/{path}", text)
        if trouble:
            raise DeviceFailed(
                f"the kernel refuses {text!r} for {self.root}/{path} ({trouble}); look at the kernel's log"
            )

    def _text(self, path: str) -> str:
        try:
            handle = os.open(f"{self.root}/{path}", os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            if not privileged.context.elsewhere:
                raise
            return str(privileged.read_attribute(f"{self.root}/{path}"))
        try:
            return os.read(handle, _MOST_BYTES).decode()
        finally:
            os.close(handle)

    def _number(self, path: str, base: int) -> int:
        text = self.text(path)
        try:
            return int(text, base)
        except ValueError:
            raise DeviceFailed(f"{self.root}/{path} is {text!r}, not a number; look at the kernel's log") from None
