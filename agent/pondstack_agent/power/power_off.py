"""Switching a host off: nothing of its memory is left."""

import subprocess
import threading

from pondstack.domain.errors import Unavailable
from pondstack.domain.power import OFF
from pondstack_agent.power.base import PowerDriver

ORDER_SECONDS = 30.0
OFF_SECONDS = 600.0
"""So long the host's services may take to end; who is still there then was not switched off."""


class PowerOff(PowerDriver):
    """Runs `command`, which has the host's init switch it off."""

    mode = OFF

    def __init__(self, command: list[str], off_seconds: float = OFF_SECONDS) -> None:
        self._command, self._seconds = command, off_seconds

    def refusal(self) -> str:
        """Return why this host cannot be switched off."""
        return "" if self._command else "[power] off_command is empty"

    def enter(self, woken: threading.Event) -> None:
        """Order it; the process that runs this ends with its host."""
        try:
            done = subprocess.run(
                self._command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ORDER_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{self._command[0]} does not switch the host off: {error}") from error
        if done.returncode:
            raise Unavailable(f"{self._command[0]} does not switch the host off: {done.stderr.strip()[-300:]}")
        if not woken.wait(self._seconds):
            raise Unavailable(f"the host was told to switch off and is still there after {self._seconds:.0f} s")
