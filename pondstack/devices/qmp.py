"""The few lines of QEMU's monitor protocol that fabric and agents need: one command at a time, one answer each.

The package qemu.qmp is asyncio throughout, and before its 1.0; our threads would need an event loop each.
"""

import json
import socket
import struct
import time
from types import TracebackType
from typing import Any, Self

from pondstack.domain.errors import DeviceFailed

_MAX_LINE_BYTES = 16 * 1024 * 1024  # the schema of a QEMU is about 1 MiB


class Refused(Exception):
    """QEMU's answer to a command was an error: `kind` is its class, the text its description."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class NobodyListens(Exception):
    """The socket is there, and no process of this machine has it open any more: its QEMU has ended."""


class Monitor:
    """A connection to one QEMU's monitor, which serves one client at a time: use it as a context manager, briefly.

    `link`: one that QEMU has made itself, of which `path` is only the name. Raises DeviceFailed when it does not answer
    within `answer_seconds`, since it was made or renewed, or talks nonsense; NobodyListens.
    """

    def __init__(self, path: str, answer_seconds: float, link: socket.socket | None = None) -> None:
        self._path = path
        self._seconds = answer_seconds
        self._connected = link is not None
        self._socket = link or socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._lines = self._socket.makefile("rb")
        self.renew()

    def __enter__(self) -> Self:
        try:
            self._greet()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def renew(self) -> None:
        """Give it all of its time once more."""
        self._ends = time.monotonic() + self._seconds

    def execute(self, command: str, **arguments: Any) -> Any:
        """Run a command and return what it returns; raises Refused, DeviceFailed."""
        request = json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n"
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(request)
            while "event" in (answer := self._read()):
                pass
            if "error" in answer:
                raise Refused(str(answer["error"]["class"]), str(answer["error"]["desc"]))
            return answer["return"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._failed(error) from error

    def _greet(self) -> None:
        try:
            if not self._connected:
                self._connect()
            if "QMP" not in self._read():
                raise ValueError("no greeting")
            self.execute("qmp_capabilities")
        except ConnectionRefusedError as error:
            raise NobodyListens(self._path) from error
        except (Refused, OSError, ValueError) as error:
            raise self._failed(error) from error

    def _connect(self) -> None:
        # A full queue makes connect(2) wait, but only with this limit; settimeout() would have it fail at once.
        limit = struct.pack("@ll", int(self._seconds), int(self._seconds % 1 * 1e6))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self._socket.connect(self._path)

    def _read(self) -> dict[str, Any]:
        self._socket.settimeout(self._left())
        line = self._lines.readline(_MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise ConnectionError("it closed the connection")
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise ValueError(f"{line[:80]!r} is no answer")
        return answer

    def _left(self) -> float:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no answer within {self._seconds:g} s")
        return left

    def _failed(self, error: Exception) -> DeviceFailed:
        return DeviceFailed(
            f"QEMU's monitor {self._path} does not answer ({type(error).__name__}: {error}); see whether its QEMU runs "
            "and no other client holds the monitor, which serves one at a time"
        )

    def _close(self) -> None:
        self._lines.close()
        self._socket.close()
