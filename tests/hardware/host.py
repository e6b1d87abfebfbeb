"""An emulated host from power on to power off, and the channel into it."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from queue import Empty
from types import TracebackType
from typing import Any, Self

from .channel import Channel
from .machine import Machine
from .qemu import Files, Qemu

KEEP = "PONDSTACK_KEEP_HOSTS"
_TAIL_LINES = 40
_POLL_SECONDS = 0.5


class HostDidNotBoot(Exception):
    """A host ended or was silent until its deadline; the text has the end of its console."""


class EmulatedHost:
    """A QEMU host. As a context manager it boots, and leaves nothing behind but its logs when something failed.

    Its disk outlives `power_off` and `reboot`; what it had not synced is lost, as on a power cut. `folder` has
    console.log, qemu.log and the socket `login`.
    """

    def __init__(self, machine: Machine, files: Files, code: Path) -> None:
        self.machine, self._files, self._code = machine, files, code
        self.folder = Path(tempfile.mkdtemp(prefix=f"host-{machine.name}-", dir="/tmp"))
        self._disk = self.folder / "disk.qcow2"
        self._qemu: Qemu | None = None
        self._channel: Channel | None = None
        # A build of other files waits for this one; closed, it lets go.
        self._lock = (files.folder / "lock").open("rb")
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        backing = ["-b", str(files.image), "-F", "raw"]
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *backing, str(self._disk)], check=True)

    def __enter__(self) -> Self:
        try:
            self.power_on()
        except BaseException:
            self.close(failed=True)
            raise
        return self

    def __exit__(
        self, cls: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.close(failed=cls is not None)

    def __getattr__(self, name: str) -> Any:
        """Pass what a channel does on to that of the running host."""
        if name not in {"run", "put", "get", "start", "remote", "wait_for_path"}:
            raise AttributeError(name)
        return getattr(self.channel, name)

    @property
    def channel(self) -> Channel:
        """The channel into the running host."""
        if self._channel is None:
            raise RuntimeError(f"{self.machine.name} is switched off")
        return self._channel

    def power_on(self) -> None:
        """Boot, return when the host answers; raises HostDidNotBoot."""
        self._qemu = Qemu(self.machine, self._files, self.folder, self._disk, self._code)
        self._channel = channel = Channel(self._qemu.channel, self.tail)
        waited = 0.0
        while True:
            try:
                channel.hello.get(timeout=_POLL_SECONDS)
                break
            except Empty:
                waited += _POLL_SECONDS
            code = self._qemu.process.poll()
            if code is not None or waited > self.machine.boot_seconds:
                what = f"QEMU ended with {code}" if code is not None else f"silent for {waited:.0f} s"
                self.power_off()
                raise HostDidNotBoot(f"{self.machine.name}: {what}\n{self.tail()}\n  logs: {self.folder}")

    def power_off(self) -> None:
        """Take the power away; nothing that was not synced survives. Idempotent."""
        if self._qemu is not None:
            self._qemu.end()
            self.channel.ended()
            self._qemu = self._channel = None

    def reboot(self) -> None:
        """Power off and on; started processes and objects are gone, the disk is what it was."""
        self.power_off()
        self.power_on()

    @property
    def pid(self) -> int:
        """The process of QEMU."""
        return self._running().process.pid

    def cut_wire(self, cut: bool) -> None:
        """Have the host's wire lose all frames from now on, or none; its card keeps its carrier."""
        self._running().cut_wire(cut)

    @property
    def state(self) -> str:
        """What a host with a wire is: off, running, suspended (S3)..."""
        return "off" if self._qemu is None else self._qemu.state()

    def wake(self) -> None:
        """Press the power button of a host with a wire that is suspended."""
        self._running().wake()

    def tail(self) -> str:
        """Return the end of the console and of QEMU's own messages."""
        return "\n".join(self._tail(name) for name in ("console.log", "qemu.log"))

    def close(self, *, failed: bool) -> None:
        """Switch off and remove the folder; after a failure its logs stay and its place is printed. Idempotent."""
        self.power_off()
        self._lock.close()
        if failed or os.environ.get(KEEP):
            self._disk.unlink(missing_ok=True)
            print(f"logs of {self.machine.name}: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _running(self) -> Qemu:
        if self._qemu is None:
            raise RuntimeError(f"{self.machine.name} is switched off")
        return self._qemu

    def _tail(self, name: str) -> str:
        path = self.folder / name
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return "\n".join([f"--- {name}", *lines[-_TAIL_LINES:]])
