"""The pool device of emulated hosts: an emulated device that is asked of whole hosts, as each maps all of its memory.

The real controller loads it: `entry_point` makes the folder by which stevedore finds it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import psutil

from pondstack.devices import emulated_files as files
from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.errors import InUse

DRIVER = "heads"


class HeadsDevice(EmulatedDevice):
    """A multi-headed device that cuts no host off: one is kept out when its QEMU has ended."""

    driver: ClassVar[str] = DRIVER

    def fence(self, host: str, indexes: Iterable[int], *, epoch: int) -> None:
        """End all permissions of a host; raises InUse while it runs."""
        super().fence(host, indexes, epoch=epoch)
        if self._runs(host):
            raise InUse(f"host {host} runs and reaches all of {self.path}; power it off")

    def check_unreachable(self, indexes: Iterable[int]) -> None:
        """Do not ask who maps a slice: every host that runs does, and the agent keeps it to the permission table."""
        del indexes

    def _runs(self, host: str) -> bool:
        name, memory = f"pond.name={host}", str(self.path / files.MEMORY)
        for process in psutil.process_iter(["cmdline"]):
            line = " ".join(process.info["cmdline"] or ())
            if name in line.split() and f"mem-path={memory}," in line:
                return True
        return False


def entry_point(folder: Path) -> Path:
    """Make what a distribution with this driver would install in `folder`; returns it."""
    installed = folder / f"pondstack_test_{DRIVER}-0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pondstack-test-{DRIVER}\nVersion: 0\n")
    line = f"{DRIVER} = {HeadsDevice.__module__}:{HeadsDevice.__name__}"
    (installed / "entry_points.txt").write_text(f"[pondstack.pool_devices]\n{line}\n")
    return folder
