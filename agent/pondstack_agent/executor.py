"""Where the agent's parts have work done in the background."""

from collections.abc import Callable
from typing import Any, Protocol


class Executor(Protocol):
    """Runs what no request waits for, such as telling the controller."""

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run a function later."""
