"""The CXL driver in a host, for tests: objects made anew as an agent's restart does, killed at a chosen step."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

from pondstack_agent.drivers.cxl import CxlHostPool
from pondstack_agent.drivers.cxl.driver import Settings

STATE = Path("/var/lib/pondstack/agent")


class Driver:
    """One driver object at a time, over one device and the permission table that the host sees."""

    def __init__(
        self, host: str, serial: str, table: str, attempts: int = 3, seconds: float = 60.0, number: int = 1
    ) -> None:
        self._arguments: dict[str, Any] = {
            "host": host,
            "state_dir": STATE,
            "pools": {number: serial},
            "permission_tables": [table] if table else [],
            "settings": Settings(attempts, seconds),
            "step": self._step,
        }
        STATE.mkdir(parents=True, exist_ok=True)
        self._kill_at = 0
        self.steps: list[str] = []
        self.open()

    def open(self) -> None:
        """Make a new driver object."""
        self._driver = CxlHostPool(**self._arguments)

    def call(self, method: str, arguments: list[Any]) -> Any:
        """Call a method of the driver."""
        return getattr(self._driver, method)(*arguments)

    def kill_at(self, step: int) -> None:
        """End this process, as kill -9 does, before the step-th change of the kernel from now on; 0: never."""
        self._kill_at, self.steps = step, []

    def lose_state(self) -> None:
        """Remove the folder of the agent's state."""
        shutil.rmtree(STATE)
        STATE.mkdir()

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if len(self.steps) == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
