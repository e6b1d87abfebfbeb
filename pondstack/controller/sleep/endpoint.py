"""RPC endpoint of the leading controller for hosts that sleep (since 1.17); see ControllerAPI."""

from collections.abc import Callable
from typing import Any

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.controller.sleep.keeper import SleepKeeper
from pondstack.db.read.reader import SqlReader
from pondstack.rpc.controller_sleep_api import SLEEP_VERSION


class SleepEndpoint:
    """What operators ask for. Errors are of pondstack.domain.errors. `keeper()` may raise Conflict."""

    target = oslo_messaging.Target(version=SLEEP_VERSION)

    def __init__(
        self, *, keeper: Callable[[], SleepKeeper], reader: SqlReader, driver: Callable[[], str], gate: Gate
    ) -> None:
        """`driver()`: how hosts sleep where nobody says it."""
        self.gate = gate
        self._keeper, self._reader, self._driver = keeper, reader, driver

    @gated
    def suspend_host(
        self, _context: Any, *, name: str, driver: str | None = None, mib: int | None = None, operation_id: str
    ) -> dict[str, Any]:
        """Begin to put a host to sleep; it goes on in the background."""
        self._reader.host(name)
        begun = self._keeper().suspend(name, driver or self._driver(), mib, operation_id)
        return {"uuid": begun.uuid, "state": str(begun.state)}

    @gated
    def wake_host(self, _context: Any, *, name: str, operation_id: str) -> dict[str, Any]:
        """Have a host wake, or not fall asleep; it goes on in the background."""
        self._reader.host(name)
        begun = self._keeper().wake(name, operation_id)
        return {"uuid": begun.uuid, "state": str(begun.state)}
