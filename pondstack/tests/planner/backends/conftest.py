"""A stand-in for a cluster: threads of this process, registered with joblib as Ray's backend is."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from joblib import parallel_config, register_parallel_backend
from joblib.parallel import BACKENDS, ThreadingBackend

from pondstack.planner.backends import connection
from pondstack.planner.backends.address import Address


class NoGenerator(ThreadingBackend):
    """Returns a list when all is done, as the backends that derive from joblib's for multiprocessing."""

    supports_return_generator = False


class Lost(Exception):
    """What the library of the stand-in raises."""


class Standin:
    """Has what connection.Cluster names. `missing`: what it lacks; `broken`: what a call raises."""

    errors = (Lost,)

    def __init__(self, address: Address) -> None:
        self.address = address
        self.missing: Callable[[], str] = str
        self.broken: Exception | None = None
        self.closed = threading.Event()

    def call(self, function: Any, *arguments: Any, timeout: float) -> Any:
        """Return what a function returns."""
        assert timeout > 0
        if self.broken:
            raise self.broken
        return function(*arguments)

    def lack(self) -> str:
        """Say what is missing."""
        return self.missing()

    def in_use(self) -> Any:
        """Have joblib use threads."""
        return parallel_config(backend="standin", n_jobs=2)

    def close(self) -> None:
        """Note it."""
        self.closed.set()


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Standin:
    """Return what ray://head:1 connects to, without a look whether somebody listens there."""
    monkeypatch.setattr(Address, "check", lambda _: None)
    monkeypatch.setitem(BACKENDS, "standin", None)  # Forgotten after the test.
    register_parallel_backend("standin", NoGenerator)
    made = Standin(Address.parsed("ray://head:1"))
    monkeypatch.setitem(connection.KINDS, "ray", ("joblib", "joblib", lambda _: made))
    return made
