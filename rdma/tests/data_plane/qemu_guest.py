"""A real guest, under a stock QEMU without KVM: the stand-in guest's program is its init, and verifies words inside.

Its RAM is a memfd of QEMU, of whose content QEMU's devices and the guest's kernel use a part as well.
"""

import ctypes
import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from pondstack.domain.units import MIB
from pondstack_rack.layout import share
from pondstack_rack.services.image import KERNEL
from pondstack_rack.wait import wait_until

from .builds import HERE, NATIVE, build
from .processes import DEADLINE_SECONDS, large_files

MEMORY = "memory-backend-memfd"
"""As QEMU names the memfd of such a backend."""

END_OF_FILE = "\x04"
_THP_DISABLE = 41  # PR_SET_THP_DISABLE


def initramfs(folder: Path) -> Path:
    """Build the guest's only file, its init."""
    tree = folder / "tree"
    tree.mkdir()
    build(tree / "init", [HERE / "standin_guest.c", NATIVE / "pager" / "latency.c"], ("-O2", "-static"), libraries=())
    command = ["cpio", "--quiet", "-o", "-H", "newc"]
    archive = subprocess.run(command, cwd=tree, input=b".\ninit\n", stdout=subprocess.PIPE, check=True).stdout
    made = folder / "initramfs"
    made.write_bytes(gzip.compress(archive, 1))
    return made


def _prepare() -> None:
    """In the child: no huge pages in shared memory, as the pager asks for; and files as large as the guest's memory."""
    ctypes.CDLL(None).prctl(_THP_DISABLE, 1, 0, 0, 0)
    large_files()


def _backend(kind: dict[str, Any], name: str, mib: int) -> tuple[str, str]:
    return "-object", json.dumps({**kind, "id": name, "size": mib * MIB})


def _whole(kind: dict[str, Any], mib: int) -> tuple[str, ...]:
    """Return words for QEMU: memory of one kind."""
    return *_backend(kind, "ram-node0", mib), "-machine", "q35,memory-backend=ram-node0"


def _nodes(mib: int, slices: Path) -> tuple[str, ...]:
    """Return words for QEMU, as pondstack-qemu has them for a guest with pool memory: half of its memory is a file."""
    local = _backend({"qom-type": "memory-backend-memfd", "share": False}, "ram-node0", mib - mib // 2)
    pool = _backend({"qom-type": "memory-backend-file", "mem-path": str(slices), "share": True}, "ram-node1", mib // 2)
    nodes = ("-numa", "node,cpus=0-1,memdev=ram-node0", "-numa", "node,memdev=ram-node1")
    return *local, *pool, "-machine", "q35", *nodes


class QemuGuest:
    """The interface of StandinGuest. `mib` are verified, of `ram_mib`; `opened`: its memory is a memfd that QEMU gets
    as a file, as pondstack-qemu has it, so that QEMU does not migrate it; `more`: other words for QEMU; `program`:
    another one, which becomes QEMU; `pattern`: of accesses, and `rest_us`: of each thread after 16 of them, see
    standin_guest.c; `slices`: a file, as large as half of its memory, that is a node without CPUs of it."""

    def __init__(
        self,
        image: Path,
        mib: int,
        ram_mib: int,
        threads: int = 2,
        seed: int = 1,
        more: tuple[str, ...] = (),
        *,
        opened: bool = False,
        pattern: str = "random",
        rest_us: int = 0,
        slices: Path | None = None,
        program: tuple[str, ...] = ("qemu-system-x86_64",),
    ) -> None:
        memory = os.memfd_create(MEMORY) if opened else -1
        kind = {"qom-type": "memory-backend-memfd"}
        if opened:
            kind = {"qom-type": "memory-backend-file", "mem-path": f"/proc/self/fd/{memory}"}
        words = _nodes(ram_mib, slices) if slices else _whole({**kind, "share": True}, ram_mib)
        environment = f"STANDIN_REST={rest_us}"  # of init: what the kernel does not know itself
        guest = f"words {mib} {threads} {seed} {pattern}"
        arguments = f"console=ttyS0 quiet panic=-1 no_timer_check rdinit=/init {environment} -- {guest}"
        self.process = subprocess.Popen(
            [
                *(*program, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"),
                *("-nodefaults", "-display", "none", "-no-reboot", "-m", f"{ram_mib}M"),
                *words,
                *("-kernel", str(share(KERNEL)), "-initrd", str(image), "-append", arguments, "-serial", "stdio"),
                *more,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=_prepare,
            pass_fds=(memory,) if opened else (),
        )
        if opened:
            os.close(memory)

    @property
    def pid(self) -> int:
        """Of QEMU."""
        return self.process.pid

    def await_memory(self) -> None:
        """Wait until QEMU has its memory."""
        maps = Path(f"/proc/{self.pid}/maps")
        assert wait_until(lambda: MEMORY in maps.read_text(), DEADLINE_SECONDS, 0.01)

    def filtered(self) -> bool:
        """Wait until a seccomp filter binds QEMU's process, as -sandbox has it."""
        status = Path(f"/proc/{self.pid}/status")
        return wait_until(lambda: "Seccomp:\t2" in status.read_text(), DEADLINE_SECONDS, 0.01)

    def await_ready(self) -> None:
        """Wait until its init runs."""
        self.await_line("ready")

    def fill(self) -> None:
        """Have it write all of its memory once, and wait for that."""
        assert self.process.stdin
        print("f", file=self.process.stdin, flush=True)
        self.await_line("filled")

    def begin(self) -> None:
        """Have it work."""
        assert self.process.stdin
        print("g", file=self.process.stdin, flush=True)

    def stop(self) -> None:
        """Have it work no more, and wait for that."""
        assert self.process.stdin
        print("s", file=self.process.stdin, flush=True)
        self.await_line("stopped")

    def await_line(self, wanted: str) -> None:
        """Wait until its console says this; fails at its end."""
        assert self.process.stdout
        printed = ""
        for line in self.process.stdout:
            printed += line
            if line.strip() == wanted:
                return
        raise AssertionError(printed)

    def finish(self) -> dict[str, int]:
        """Have it verify all of its memory; what it counted."""
        out, _ = self.process.communicate(END_OF_FILE, timeout=300)
        (line,) = (line for line in out.splitlines() if line.startswith("{"))
        found: dict[str, int] = json.loads(line)
        return found

    def kill(self) -> None:
        """End it at once; idempotent."""
        self.process.kill()
        self.process.communicate()
