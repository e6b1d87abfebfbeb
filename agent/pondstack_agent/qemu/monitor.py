"""The monitor of a guest's QEMU that comes from another host: what a migration leaves out, and whether it is over."""

import socket
from types import TracebackType
from typing import Any, Self

from pondstack.devices import qmp
from pondstack.domain.errors import DeviceFailed

IGNORE_SHARED = "x-ignore-shared"
"""A migration leaves out memory that is a shared file. QEMU checks that both of its ends have it, or none."""


class MonitorError(Exception):
    """QEMU has ended, is silent, or does not do it."""


class Monitor:
    """Of one QEMU, over a connection that it has made; each command has a deadline. Not thread-safe."""

    def __init__(self, link: socket.socket, seconds: float) -> None:
        self._monitor = qmp.Monitor("of a guest that comes", seconds, link)

    def __enter__(self) -> Self:
        """Wait for its greeting, which comes once the machine is made; raises MonitorError."""
        try:
            self._monitor.__enter__()
        except DeviceFailed as error:
            raise MonitorError(error.message) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._monitor.__exit__(kind, error, at)

    def ask(self, command: str, /, **arguments: Any) -> Any:
        """Have a command carried out; raises MonitorError."""
        self._monitor.renew()
        try:
            return self._monitor.execute(command, **arguments)
        except qmp.Refused as error:
            raise MonitorError(f"QEMU refuses {command}: {error}") from error
        except DeviceFailed as error:
            raise MonitorError(error.message) from error

    def ignore_shared(self, *, on: bool) -> None:
        """Have migrations leave shared files out, or not; raises MonitorError."""
        self.ask("migrate-set-capabilities", capabilities=[{"capability": IGNORE_SHARED, "state": on}])

    def has_come(self) -> bool:
        """Whether the guest's migration to this QEMU is complete; raises MonitorError, also where it failed."""
        status = self.ask("query-migrate").get("status", "")
        if status == "failed":
            raise MonitorError("the migration to this host failed")
        return bool(status == "completed")
