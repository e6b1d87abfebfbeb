"""A cluster of Dask: its scheduler, through joblib's own backend for it."""

import logging
from contextlib import AbstractContextManager
from typing import Any

from joblib import parallel_config

from pondstack.planner.backends.address import ANSWER_SECONDS, Address

PACKAGES = "dask[distributed]"
CLOSE_SECONDS = 5
LOGGERS = ("distributed", "tornado.application")
"""They log tracebacks of what this run says in a sentence."""


class DaskScheduler:
    """What one run has of a cluster of Dask. Raises OSError where the scheduler does not answer."""

    def __init__(self, address: Address) -> None:
        from distributed import Client, KilledWorker
        from distributed.client import FutureCancelledError
        from distributed.comm import CommClosedError

        self.errors: tuple[type[BaseException], ...] = (CommClosedError, FutureCancelledError, KilledWorker)
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._client: Any = Client(f"tcp://{address.where}", timeout=ANSWER_SECONDS, set_as_default=False)

    def call(self, function: Any, *arguments: Any, timeout: float) -> Any:
        """Return what a function returns on a worker; seconds. Raises what it raises, or TimeoutError."""
        return self._client.submit(function, *arguments, pure=False).result(timeout=timeout)

    def lack(self) -> str:
        """Say what keeps parts from being run; empty: nothing. Does not return, or raises, where it is gone."""
        return "" if self._client.ncores() else "has no worker"

    def in_use(self) -> AbstractContextManager[Any]:
        """Have joblib use it. It takes all threads of all workers, also of those that come later."""
        return parallel_config(backend="dask", client=self._client)

    def close(self) -> None:
        """Leave it; what it still runs of this run is dropped."""
        self._client.close(timeout=CLOSE_SECONDS)
