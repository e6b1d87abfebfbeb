"""QEMU's dynamic-capacity device with many heads: one cxl-type3 device per host, in one QEMU, over one memory file."""

import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from pondstack.devices.heads import Head, machine_id
from pondstack.devices.qmp import Monitor, NobodyListens
from pondstack.domain.errors import DeviceFailed

from .dcd_host import WINDOW_BYTES, DcdHost
from .hdm import decode
from .qemu import Files
from .qtest import Qtest

MIB = 2**20
REGION_MIB = 256
"""A region of QEMU's device is a multiple of this."""

FIXED_WINDOW = "cxl-fixed-memory-region"
FIRST_WINDOW = 0xE0000000
START_SECONDS = 120.0


class DcdRig:
    """A running QEMU without processor or guest. `hosts` are the test's own, one per head."""

    def __init__(self, files: Files, folder: Path, names: Sequence[str]) -> None:
        self.memory = folder / "memory"
        with self.memory.open("wb") as file:
            file.truncate(REGION_MIB * MIB)
        self.monitor, qtest = folder / "qmp", folder / "qtest"
        with (folder / "qemu.log").open("wb") as log:
            self.process = subprocess.Popen(
                [*files.qemu(), *_arguments(self.memory, len(names)), *_sockets(self.monitor, qtest)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=files.environment(),
            )
        try:
            self._wait()
            self.qtest = Qtest(qtest)
            windows = range(FIRST_WINDOW, FIRST_WINDOW + len(names) * WINDOW_BYTES, WINDOW_BYTES)
            self.hosts = {
                name: DcdHost(self.qtest, port, window)
                for port, (name, window) in enumerate(zip(names, windows, strict=True))
            }
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def head(self, name: str) -> Head:
        """Return the head of a host, as a device folder lists it."""
        return Head(str(self.monitor), f"head{list(self.hosts).index(name)}", machine_id())

    def map_memory(self, *names: str) -> list[int]:
        """Lead addresses of the processor to the memory of hosts' heads; returns where each begins. Once only."""
        bridge, window = _windows(self.monitor)
        starts = []
        for number, name in enumerate(names):
            starts.append(window + number * REGION_MIB * MIB)
            port = list(self.hosts).index(name)
            decode(self.qtest, bridge, number, starts[-1], REGION_MIB * MIB, port=port)
            decode(self.qtest, self.hosts[name].component, 0, starts[-1], REGION_MIB * MIB)
        return starts

    def clear(self) -> None:
        """Have all hosts decline what they are offered, and give back all that they have."""
        for host in self.hosts.values():
            host.answer(accept=False)
            if extents := host.extents():
                host.give_back(*extents)

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()
        self.qtest.close()

    def _wait(self) -> None:
        """Wait until the monitor answers; raises RuntimeError with QEMU's log when it ends, or is too late."""
        ends = time.monotonic() + START_SECONDS
        while time.monotonic() < ends:
            try:
                with Monitor(str(self.monitor), START_SECONDS):
                    return
            except (NobodyListens, DeviceFailed):
                try:
                    self.process.wait(0.1)
                except subprocess.TimeoutExpired:
                    continue
                break
        raise RuntimeError(f"QEMU does not answer: {(self.monitor.parent / 'qemu.log').read_text()}")


def _windows(monitor: Path) -> tuple[int, int]:
    """Return the addresses of the host bridge's registers and of the fixed memory window."""
    with Monitor(str(monitor), START_SECONDS) as qemu:
        tree = qemu.execute("human-monitor-command", **{"command-line": "info mtree"})
    found = [re.search(rf"([0-9a-f]{{16}})-.*: {name}\s", tree) for name in ("cxl_host_reg", FIXED_WINDOW)]
    bridge, window = (int(match[1], 16) for match in found if match)
    return bridge, window


def _arguments(memory: Path, heads: int) -> list[str]:
    words = ["-machine", "q35,cxl=on,cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size=1G", "-accel", "qtest"]
    words += ["-m", "64M", "-nodefaults", "-no-user-config", "-display", "none"]
    words += ["-device", "pxb-cxl,hdm_for_passthrough=on,bus_nr=12,bus=pcie.0,id=cxl.1"]
    for head in range(heads):
        words += ["-object", f"memory-backend-file,id=m{head},share=on,mem-path={memory},size={REGION_MIB}M"]
        words += ["-device", f"cxl-rp,port={head},bus=cxl.1,addr={head:#x},id=port{head},chassis=0,slot={head}"]
        words += ["-device", f"cxl-type3,bus=port{head},volatile-dc-memdev=m{head},num-dc-regions=1,id=head{head}"]
        words[-1] += f",sn={head + 1}"
    return words


def _sockets(monitor: Path, qtest: Path) -> list[str]:
    server = "server=on,wait=off"
    return ["-qmp", f"unix:{monitor},{server}", "-qtest", f"unix:{qtest},{server}", "-qtest-log", "/dev/null"]
