"""One turn of the tables: a guest without KVM boots, works, tells figures on its console, and powers off."""

import contextlib
import ctypes
import json
import math
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.extension import interruption
from bench.extension.image import Image
from bench.extension.swap_areas import CannotMeasure
from pondstack.devices.qmp import Monitor
from pondstack_rack.wait import wait_until
from rdma.tests.data_plane.processes import DEADLINE_SECONDS, end_with_parent

MEMORY = "memory-backend-memfd"
MARK = "FIGURE "
_THP_DISABLE = 41  # PR_SET_THP_DISABLE
_ANSWER_SECONDS = 30.0


@dataclass(frozen=True)
class Figure:
    """Of one workload in one guest. math.inf: it was not done within the limit. Pages are those of its swap disk."""

    seconds: float
    pages_in: int
    pages_out: int
    faults: int = 0
    """Under the pager, since the workload before ended: its memory was filled in that time, too."""

    mirror_reads: int = 0


Count = Callable[[], tuple[int, int]]
"""Of a data plane so far: faults, and pages read from the mirror."""


def figures(lines: Iterable[str], count: Count = lambda: (0, 0)) -> dict[str, Figure]:
    """Read a console up to the guest's end; a workload that ended for want of memory took for ever.

    CannotMeasure when the guest says that something else failed, or says nothing to the end.
    """
    found: dict[str, Figure] = {}
    before = (0, 0)
    tail: list[str] = []
    for line in lines:
        tail = [*tail[-30:], line.rstrip()]
        if MARK not in line:
            continue
        told = _parse(line)
        if told.get("done"):
            return found
        if "failed" in told and "name" not in told:
            raise CannotMeasure(f"the guest says: {told['failed']}\n" + "\n".join(tail))
        if "name" in told:
            seconds = told.get("seconds")
            lasted = math.inf if seconds is None else float(seconds)
            now = count()
            swapped = int(told.get("pswpin", 0)), int(told.get("pswpout", 0))
            found[told["name"]] = Figure(lasted, *swapped, now[0] - before[0], now[1] - before[1])
            before = now
    raise CannotMeasure("the guest ended before its work:\n" + "\n".join(tail))


def _parse(line: str) -> dict[str, Any]:
    """Return what a line says; nothing where the kernel printed into it."""
    with contextlib.suppress(ValueError):
        told = json.loads(line[line.index(MARK) + len(MARK) :])
        if isinstance(told, dict):
            return told
    return {}


@dataclass(frozen=True)
class Machine:
    """What a guest is: its memory, what it works on, and the options of QEMU's -drive for a swap disk, if any."""

    image: Image
    ram_mib: int
    work_mib: int
    limit_seconds: float
    workloads: Sequence[str]
    swap: str = ""
    options: Sequence[str] = field(default_factory=tuple)

    def command(self, monitor: Path) -> list[str]:
        """The command line; its guest waits for `cont`."""
        words = [str(self.work_mib), f"{self.limit_seconds:g}", *self.workloads]
        quiet = "console=ttyS0 quiet panic=-1 mitigations=off audit=0 no_timer_check transparent_hugepage=never"
        disk = f"if=none,id=root,format=raw,readonly=on,file={self.image.disk}"
        swap = ("-drive", f"if=none,id=swap,{self.swap}", "-device", "virtio-blk-pci,drive=swap") if self.swap else ()
        return [
            *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-S"),
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-m", f"{self.ram_mib}M"),
            *("-object", f"memory-backend-memfd,id=ram-node0,size={self.ram_mib}M,share=on"),
            *("-machine", "q35,memory-backend=ram-node0", "-qmp", f"unix:{monitor},server=on,wait=off"),
            *("-kernel", str(self.image.kernel), "-initrd", str(self.image.initramfs), "-serial", "stdio"),
            *("-drive", disk, "-device", "virtio-blk-pci,drive=root", *swap),
            *("-append", f"{quiet} rdinit=/init -- {' '.join(words)}"),
            *self.options,
        ]


def _prepare() -> None:
    """In the child: no huge pages in shared memory, as the pager asks for."""
    ctypes.CDLL(None).prctl(_THP_DISABLE, 1, 0, 0, 0)
    end_with_parent()


class Guest:
    """A QEMU whose guest has not begun yet."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        interruption.check()
        self._monitor = folder / "monitor"
        self.process = subprocess.Popen(
            machine.command(self._monitor),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            preexec_fn=_prepare,
        )

    @property
    def pid(self) -> int:
        """Of QEMU."""
        return self.process.pid

    def await_memory(self) -> None:
        """Wait until QEMU has its memory, and its monitor."""
        maps = Path(f"/proc/{self.pid}/maps")

        def has() -> bool:
            return self.process.poll() is not None or (self._monitor.exists() and MEMORY in maps.read_text())

        assert wait_until(has, DEADLINE_SECONDS, 0.01)
        if self.process.poll() is not None:
            assert self.process.stdout
            raise CannotMeasure(f"QEMU does not start: {self.process.stdout.read()}")

    def work(self, count: Count = lambda: (0, 0)) -> dict[str, Figure]:
        """Let it boot and work; what it told, and what was counted meanwhile."""
        with Monitor(str(self._monitor), _ANSWER_SECONDS) as monitor:
            monitor.execute("cont")
        assert self.process.stdout
        return figures(self.process.stdout, count)

    def kill(self) -> None:
        """End it; idempotent."""
        self.process.kill()
        self.process.communicate()
