"""One write of the ledger after another, through the REST API, to see for how long none is possible."""

import threading
import time
from collections.abc import Callable
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException

PAUSE_SECONDS = 0.05
STOP_SECONDS = 60.0
UNKNOWN = (409, 503)
"""The change may have taken effect: the host is read again before the next one."""


class Changes:
    """While entered: sets a host to what it is already, waits for the answer, and again.

    Each acknowledged change is a transaction of the leading controller with an operation in the journal, and changes
    nothing else.
    `acknowledged` has the times of the answers by `clock`, `refused` the texts of those that were none, `failure` what
    ended them early.
    """

    def __init__(self, memory: Adapter, host: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._memory = memory
        self._path = f"/hosts/{host}"
        self._clock = clock
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="changes", daemon=True)
        self.acknowledged: list[float] = []
        self.refused: list[str] = []
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the change under way; raises what ended the changes early, unless another error is on its way."""
        self._stopped.set()
        self._thread.join(STOP_SECONDS)
        if error is None and self.failure is not None:
            raise self.failure

    def since(self, moment: float) -> int:
        """Return how many changes were acknowledged after a moment of the clock."""
        return sum(1 for answered in list(self.acknowledged) if answered > moment)

    @property
    def longest_wait_seconds(self) -> float:
        """The longest time between two acknowledged changes."""
        return max((later - earlier for earlier, later in pairwise(list(self.acknowledged))), default=0.0)

    def _run(self) -> None:
        try:
            host = self._read()
            while not self._stopped.wait(PAUSE_SECONDS):
                host = self._change(host)
        except ClientException as error:
            self.failure = error

    def _read(self) -> dict[str, Any]:
        host: dict[str, Any] = self._memory.get(self._path).json()
        return host

    def _change(self, host: dict[str, Any]) -> dict[str, Any]:
        wanted = {"enabled": host["enabled"], "generation": host["generation"]}
        if not host["enabled"]:
            wanted["disabled_reason"] = host["disabled_reason"]
        answer = self._memory.put(self._path, json=wanted, raise_exc=False)
        if answer.status_code in UNKNOWN:
            self.refused.append(answer.json()["errors"][0]["detail"])
            return self._read()
        answer.raise_for_status()
        self.acknowledged.append(self._clock())
        changed: dict[str, Any] = answer.json()
        return changed
