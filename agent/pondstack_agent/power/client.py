"""The agent's end of its host's waker, which it starts where none runs."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pondstack_agent.helper.client import HelperClient, HelperGone
from pondstack_agent.power.program import WAKER

NOTHING: dict[str, Any] = {"operation_id": "", "driver": "", "state": "", "reason": "", "drivers": {}}


class WakerClient(HelperClient):
    """Asks the waker of one folder. `files`: the agent's configuration. Raises HelperGone, HelperSilent."""

    def __init__(self, folder: Path, files: Sequence[str], launcher: str, timeout_seconds: float) -> None:
        super().__init__(WAKER, folder, launcher, timeout_seconds)
        self._files = tuple(files)
        self._lock = threading.Lock()

    def enter(self, operation_id: str, driver: str) -> dict[str, Any]:
        """Have the host sleep soon; raises BadRequest, HostUnusable, Conflict, Unavailable (no waker starts)."""
        self._begin()
        return self._ask("enter", operation_id=operation_id, driver=driver)

    def arm(self, operation_id: str, ringers: Sequence[str]) -> dict[str, Any]:
        """Have other hosts ring for one sleep; raises HostUnusable (no doorbell), Unavailable."""
        self._begin()
        return self._ask("arm", operation_id=operation_id, ringers=list(ringers))

    def told(self) -> dict[str, Any]:
        """Return how far the newest transition is; nothing where no waker runs."""
        try:
            return self._ask("told")
        except HelperGone:
            return dict(NOTHING)

    def _begin(self) -> None:
        with self._lock:
            if not self.runs:
                self._start(*(word for file in self._files for word in ("--config-file", file)))
