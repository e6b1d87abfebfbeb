"""QEMU's monitor (QMP) on a connection: one command at a time, each with a deadline."""

import json
import socket
import time
from typing import Any

IGNORE_SHARED = "x-ignore-shared"
"""A migration leaves out memory that is a shared file. QEMU checks that both of its ends have it, or none."""
_MOST_LINE = 2**20


class MonitorError(Exception):
    """QEMU has ended, is silent, or does not do it."""


class Monitor:
    """Of one QEMU. Not thread-safe."""

    def __init__(self, link: socket.socket, seconds: float) -> None:
        """Wait for its greeting, which comes once the machine is made; raises MonitorError."""
        self._link, self._seconds, self._got = link, seconds, b""
        self._line(time.monotonic() + seconds)
        self.ask("qmp_capabilities")

    def ask(self, command: str, /, **arguments: Any) -> Any:
        """Have a command carried out; raises MonitorError."""
        ends = time.monotonic() + self._seconds
        try:
            self._link.settimeout(self._seconds)
            self._link.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        except OSError as error:
            raise MonitorError(f"QEMU's monitor ended: {error}") from error
        while True:
            answer = self._line(ends)
            if "error" in answer:
                raise MonitorError(f"QEMU refuses {command}: {answer['error'].get('desc')}")
            if "return" in answer:
                return answer["return"]

    def ignore_shared(self, *, on: bool) -> None:
        """Have migrations leave shared files out, or not; raises MonitorError."""
        self.ask("migrate-set-capabilities", capabilities=[{"capability": IGNORE_SHARED, "state": on}])

    def has_come(self) -> bool:
        """Whether the guest's migration to this QEMU is complete; raises MonitorError, also where it failed."""
        status = self.ask("query-migrate").get("status", "")
        if status == "failed":
            raise MonitorError("the migration to this host failed")
        return bool(status == "completed")

    def _line(self, ends: float) -> dict[str, Any]:
        try:
            while b"\n" not in self._got:
                self._link.settimeout(max(0.001, ends - time.monotonic()))
                part = self._link.recv(65536)
                if not part or len(self._got) > _MOST_LINE:
                    raise MonitorError("QEMU ended, or its monitor has no end of a line")
                self._got += part
            line, _, self._got = self._got.partition(b"\n")
            found = json.loads(line)
        except (OSError, ValueError) as error:
            raise MonitorError(f"QEMU's monitor does not answer: {error or type(error).__name__}") from error
        if not isinstance(found, dict):
            raise MonitorError("QEMU's monitor gave no answer to go by")
        return found
