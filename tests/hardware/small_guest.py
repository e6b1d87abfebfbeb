"""A small Linux guest of the machine of the tests: a node of local memory, two without CPUs; it writes on command.

Full kernel, one static busybox as initramfs. It boots in seconds and touches little by itself. It does not say that it
is an instance: agents of tests beside this one would scan it, and clear its accessed bits.
"""

import ctypes
import gzip
import json
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

from .qemu import Files

MIB = 2**20
_THP_DISABLE = 41  # linux/prctl.h
_INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /node1 /node2
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev
for node in 1 2; do /bin/busybox mount -t tmpfs -o size=1g,mpol=bind:$node tmpfs /node$node; done
exec >/dev/ttyS0 2>&1 </dev/ttyS0
/bin/busybox stty -echo
echo "guest: ready"
while read -r node mib; do
    /bin/busybox dd if=/dev/urandom of=/node$node/$mib bs=1M count=$mib 2>/dev/null && echo "guest: wrote"
done
"""


class GuestSaidNothing(Exception):
    """The guest did not answer in time, or ended; the text has the end of its console."""


class SmallGuest:
    """A running guest; as a context manager it leaves nothing behind. Node 0 has the CPU, nodes 1 and 2 have none."""

    def __init__(self, files: Files, folder: Path, backends: Sequence[dict[str, object]], *, huge_pages: bool) -> None:
        """`backends`: one for each node, in QEMU's JSON form, with `size` in bytes.

        `huge_pages`: whether the kernel may back private memory by transparent ones, as QEMU asks it to.
        """
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._console: list[str] = []
        nodes = [f"node,nodeid={number},memdev={backend['id']}" for number, backend in enumerate(backends)]
        nodes[0] += ",cpus=0"
        self.process = subprocess.Popen(
            [
                *files.qemu(),
                *("-machine", "q35", "-accel", "tcg", "-cpu", "max,-hypervisor", "-smp", "1"),
                *("-m", f"{sum(int(str(backend['size'])) for backend in backends) // MIB}M"),
                *(word for backend in backends for word in ("-object", json.dumps(backend))),
                *(word for node in nodes for word in ("-numa", node)),
                *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"),
                *("-name", "small,debug-threads=on"),
                *("-kernel", str(files.folder / "vmlinuz"), "-initrd", str(_initramfs(files, folder))),
                # A kernel at a random place would touch some 50 MiB of any node, and free it for what is written later.
                *("-append", "console=ttyS0 panic=-1 quiet mitigations=off audit=0 nokaslr no_timer_check"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=files.environment(),
            preexec_fn=None if huge_pages else _no_huge_pages,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _cls: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(30)

    @property
    def pid(self) -> int:
        """The process of QEMU."""
        return self.process.pid

    def wait_ready(self, seconds: float) -> None:
        """Wait until it has booted; raises GuestSaidNothing."""
        self._expect("guest: ready", seconds)

    def write(self, node: int, mib: int, seconds: float) -> None:
        """Have it write so much fresh memory on a node; raises GuestSaidNothing."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{node} {mib}\n")
        self.process.stdin.flush()
        self._expect("guest: wrote", seconds)

    def _expect(self, text: str, seconds: float) -> None:
        try:
            while text not in self._lines.get(timeout=seconds):
                pass
        except Empty:
            tail = "\n".join(self._console[-30:])
            raise GuestSaidNothing(f"no {text!r} within {seconds:g} s of the line before:\n{tail}") from None

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._console.append(line.rstrip())
            self._lines.put(line)


def _no_huge_pages() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_THP_DISABLE, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_THP_DISABLE)")


def _initramfs(files: Files, folder: Path) -> Path:
    tree = folder / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin/busybox").write_bytes((files.root / "bin/busybox").read_bytes())
    (tree / "init").write_text(_INIT)
    for path in (tree / "bin/busybox", tree / "init"):
        path.chmod(0o755)
    archive = subprocess.run(
        ["cpio", "--quiet", "-o", "-H", "newc"],
        cwd=tree,
        input=b".\nbin\nbin/busybox\ninit\n",
        stdout=subprocess.PIPE,
        check=True,
    )
    made = folder / "initramfs"
    made.write_bytes(gzip.compress(archive.stdout, 1))
    return made
