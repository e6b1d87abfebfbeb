"""The one transition of a host at a time: told to sleep, asleep, awake again, or why it did not sleep."""

import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from oslo_log import log

from pondstack.domain.errors import BadRequest, Conflict, HostUnusable, PondError
from pondstack_agent.power.base import PowerDriver

LOG = log.getLogger(__name__)


class Phase(StrEnum):
    """ENTERING: it was told to, or is asleep: nothing that is frozen can ask. FAILED: it did not sleep, or not wake."""

    ENTERING = "entering"
    WOKEN = "woken"
    FAILED = "failed"


class PowerTransitions:
    """Of one host, in its waker. Thread-safe.

    `linger_seconds`: between the answer that it will sleep and its sleep; `ended` hears of the operation of a sleep
    that is over, or was none.
    """

    def __init__(
        self,
        drivers: Mapping[str, PowerDriver],
        linger_seconds: float,
        start: Callable[[Callable[[], None]], object] | None = None,
        ended: Callable[[str], object] = lambda _operation_id: None,
    ) -> None:
        self._drivers, self._linger, self._ended = drivers, linger_seconds, ended
        self._start = start or (lambda work: threading.Thread(target=work, name="sleep", daemon=True).start())
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._operation_id = self._driver = self._reason = ""
        self._phase = Phase.WOKEN

    def restore(self) -> None:
        """Undo what a former waker left behind."""
        for driver in self._drivers.values():
            if not driver.refusal():
                driver.restore()

    def enter(self, operation_id: str, driver: str) -> dict[str, Any]:
        """Have the host sleep soon, once by each operation; answers as told().

        Raises BadRequest, HostUnusable, Conflict.
        """
        found = self._drivers.get(driver)
        if found is None:
            raise BadRequest(f"a host sleeps by {', '.join(self._drivers)}, not by {driver!r}")
        with self._lock:
            if operation_id != self._operation_id:
                if self._operation_id and self._phase is Phase.ENTERING:
                    raise Conflict(f"the host is about to sleep by another operation, {self._operation_id}")
                if refusal := found.refusal():
                    raise HostUnusable(f"this host cannot sleep by {driver}: {refusal}")
                self._operation_id, self._driver, self._reason = operation_id, driver, ""
                self._phase = Phase.ENTERING
                self._woken.clear()
                self._start(lambda: self._run(operation_id, found))
        return self.told()

    def wake(self) -> dict[str, Any]:
        """Have the host wake, or not fall asleep; answers as told()."""
        self._woken.set()
        return self.told()

    def rung(self, operation_id: str) -> None:
        """Have the host wake from the sleep of one operation, and from no other one."""
        with self._lock:
            if operation_id == self._operation_id:
                self._woken.set()

    def told(self) -> dict[str, Any]:
        """Return {"operation_id", "driver", "state", "reason", "drivers": {name: why not by it, "": it can}}."""
        refusals = {name: _refusal(driver) for name, driver in self._drivers.items()}
        return {
            "operation_id": self._operation_id,
            "driver": self._driver,
            "state": str(self._phase),
            "reason": self._reason,
            "drivers": refusals,
        }

    def _run(self, operation_id: str, driver: PowerDriver) -> None:
        """Sleep after a moment, in which the answer reaches the controller, unless woken before."""
        phase, reason = Phase.WOKEN, ""
        try:
            if not self._woken.wait(self._linger):
                driver.enter(self._woken)
        except PondError as error:
            phase, reason = Phase.FAILED, error.message
            LOG.error("The host does not sleep by %s: %s", driver.mode.name, error)
        with self._lock:
            if operation_id == self._operation_id:
                self._phase, self._reason = phase, reason
        self._ended(operation_id)


def _refusal(driver: PowerDriver) -> str:
    try:
        return driver.refusal()
    except PondError as error:
        return error.message
