"""A guest that says while it gets on: its console is read as it comes, each line with the time of its arrival."""

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pondstack.devices.qmp import Monitor
from pondstack_rack.wait import wait_until
from rdma.tests.data_plane.qemu_guest import END_OF_FILE, QemuGuest

BEAT = "beat"
BEAT_SECONDS = 0.02
"""Between two of them, at least; see standin_guest.c."""

SECONDS = 300.0
"""For what must happen at some time, in a guest without KVM on a busy machine."""


BOOT_SECONDS = 300.0
"""Until it has filled its memory; seconds on a calm machine."""


class GuestHungError(Exception):
    """A guest did not come as far as its work: now and then one without KVM loses an interrupt, and waits for ever."""


class Console:
    """What a guest has said so far. Thread-safe."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, str]] = []
        self._ended = threading.Event()

    def read(self, stream: Sequence[str]) -> None:
        """Read to the end."""
        for line in stream:
            self.lines.append((time.monotonic(), line.strip()))
        self._ended.set()

    def await_line(self, wanted: str, seconds: float = SECONDS) -> str:
        """Return the first line that begins so; raises GuestHungError."""

        def found() -> str | None:
            return next((line for _, line in tuple(self.lines) if line.startswith(wanted)), None)

        if not wait_until(lambda: found() is not None or self._ended.is_set(), seconds, 0.02):
            raise GuestHungError(f"it does not say {wanted}, but {[line for _, line in self.lines[-5:]]}")
        line = found()
        assert line is not None, [each for each in self.lines if each[1] != BEAT][-20:]
        return line

    def beats(self) -> list[float]:
        """Return when it said that it gets on."""
        return [at for at, line in tuple(self.lines) if line == BEAT]


class MovingGuest(QemuGuest):
    """One end of a migration: the guest, or the QEMU that waits for it."""

    def __init__(
        self,
        image: Path,
        words_mib: int,
        ram_mib: int,
        pattern: str,
        folder: Path,
        within: tuple[str, ...],
        *,
        waits: bool,
        **kind: Any,
    ) -> None:
        """`waits`: it comes from elsewhere. `kind`: `opened` and `slices`, as of QemuGuest."""
        self._monitor = folder / "monitor"
        more = ("-qmp", f"unix:{self._monitor},server=on,wait=off")
        if waits:
            more = (*more, "-S", "-incoming", "defer")
        program = (*within, "qemu-system-x86_64")
        super().__init__(image, words_mib, ram_mib, 1, more=more, pattern=pattern, program=program, **kind)
        self.console = Console()
        self._reader = threading.Thread(target=self.console.read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def monitor(self) -> Monitor:
        """Connect to its QEMU."""
        assert wait_until(self._monitor.exists, SECONDS, 0.01)
        return Monitor(str(self._monitor), SECONDS)

    def await_line(self, wanted: str) -> None:
        """Wait until its console says this; fails at its end."""
        self.console.await_line(wanted)

    def work(self) -> None:
        """Have it fill its memory, and begin its work; raises GuestHungError."""
        self.console.await_line("ready", BOOT_SECONDS)
        self.say("f\n")
        self.console.await_line("filled", BOOT_SECONDS)
        self.begin()

    def say(self, text: str) -> None:
        """Type something."""
        assert self.process.stdin
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def wrong_words(self) -> int:
        """Have it verify all of its memory."""
        self.say(END_OF_FILE)
        return int(json.loads(self.console.await_line("{"))["wrong"])

    def kill(self) -> None:
        """End it at once; idempotent."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
