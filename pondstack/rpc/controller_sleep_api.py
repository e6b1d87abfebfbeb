"""Client of the controllers for hosts that sleep (since 1.17); part of pondstack.rpc.controller_api.ControllerAPI."""

from abc import ABC, abstractmethod
from typing import Any
from uuid import uuid4

SLEEP_VERSION = "1.17"
"""The version that suspend_host() and wake_host() came with."""


class ControllerSleepAPI(ABC):
    """The part of ControllerAPI that puts hosts to sleep."""

    @abstractmethod
    def _call_since(self, since: str, name: str, /, **arguments: Any) -> Any:
        """Call a method of the leader that came with the version `since`."""

    def suspend_host(
        self, *, name: str, driver: str | None = None, mib: int | None = None, operation_id: str | None = None
    ) -> dict[str, Any]:
        """Begin to put a host to sleep; it goes on in the background, and lends meanwhile.

        `driver` None: [sleep] driver. `mib` None: all that it can spare. Answers {"uuid", "state"}. Raises BadRequest,
        NotAligned, NotFound, Conflict (servers are there, or it sleeps already), HostUnusable, Unavailable.
        """
        answer: dict[str, Any] = self._call_since(
            SLEEP_VERSION,
            "suspend_host",
            name=name,
            driver=driver,
            mib=mib,
            operation_id=operation_id or str(uuid4()),
        )
        return answer

    def wake_host(self, *, name: str, operation_id: str | None = None) -> dict[str, Any]:
        """Have a host wake, or not fall asleep; answers as suspend_host. Raises Conflict: it is awake."""
        answer: dict[str, Any] = self._call_since(
            SLEEP_VERSION, "wake_host", name=name, operation_id=operation_id or str(uuid4())
        )
        return answer
