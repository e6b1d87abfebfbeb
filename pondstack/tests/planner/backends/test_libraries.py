"""What is asked of the libraries of Dask and Ray, with stand-ins for them: neither is installed for tests."""

import sys
from types import ModuleType
from typing import Any

import pytest

from pondstack.domain.errors import Unavailable
from pondstack.planner.backends.address import Address
from pondstack.planner.backends.dask_scheduler import DaskScheduler
from pondstack.planner.backends.ray_cluster import RayCluster


class Client:
    """Dask's, of one worker, which ends."""

    def __init__(self, address: str, **others: Any) -> None:
        self.address, self.others = address, others
        self.workers = {"tcp://worker:1": 4}

    def ncores(self) -> dict[str, int]:
        """Return threads by worker."""
        return self.workers

    def close(self, timeout: float) -> None:
        """Take bounded time."""
        assert timeout > 0


def module(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> Any:
    """Return a module that can be imported."""
    made = ModuleType(name)
    vars(made).update(members)
    monkeypatch.setitem(sys.modules, name, made)
    return made


def test_dask_is_asked_at_its_address_within_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = {
        name: type(name, (Exception,), {}) for name in ("KilledWorker", "FutureCancelledError", "CommClosedError")
    }
    module(monkeypatch, "distributed", Client=Client, KilledWorker=errors["KilledWorker"])
    module(monkeypatch, "distributed.client", FutureCancelledError=errors["FutureCancelledError"])
    module(monkeypatch, "distributed.comm", CommClosedError=errors["CommClosedError"])
    made = DaskScheduler(Address.parsed("dask://head:8786"))
    client = made._client
    assert client.address == "tcp://head:8786"
    assert client.others["timeout"] > 0
    assert set(made.errors) == set(errors.values())
    assert made.lack() == ""
    client.workers = {}
    assert made.lack() == "has no worker"
    made.close()


class TaskError(RuntimeError):
    """Ray's, of what a function raised elsewhere."""

    cause = Unavailable("another release")


class Ray:
    """A cluster of Ray with that many CPUs free, and that many of all."""

    def __init__(self, free: float, cpus: float) -> None:
        self.free, self.cpus, self.told = free, cpus, dict[str, Any]()

    def members(self) -> dict[str, Any]:
        """Return what is asked of the package."""
        return {
            "init": lambda **told: self.told.update(told),
            "shutdown": lambda: self.told.update(ended=True),
            "available_resources": lambda: {"CPU": self.free} if self.free else {},
            "cluster_resources": lambda: {"CPU": self.cpus},
            "exceptions": type("exceptions", (), {"RayError": RuntimeError, "RayTaskError": TaskError}),
            "remote": lambda function: type("Remote", (), {"remote": staticmethod(function)}),
            "get": lambda result, timeout: (timeout, result),
        }

    def installed(self, monkeypatch: pytest.MonkeyPatch) -> "Ray":
        """Have it imported."""
        module(monkeypatch, "ray", **self.members())
        module(monkeypatch, "ray.util")
        module(monkeypatch, "ray.util.joblib", register_ray=lambda: None)
        return self


def test_ray_is_watched_for_the_cpus_that_it_had_free(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray(6, 8).installed(monkeypatch)
    made = RayCluster(Address.parsed("ray://head:10001"))
    assert ray.told["address"] == "ray://head:10001"
    assert made.lack() == ""
    ray.cpus = 4
    assert made.lack() == "has 4 CPUs left of 6 that parts were given to"
    made.close()
    assert ray.told["ended"]


def test_what_a_call_raises_on_a_node_of_ray_is_raised_here(monkeypatch: pytest.MonkeyPatch) -> None:
    Ray(6, 8).installed(monkeypatch)
    made = RayCluster(Address.parsed("ray://head:10001"))
    assert made.call(abs, -1, timeout=5) == (5, 1)

    def fail() -> None:
        raise TaskError("ray::fail() of a far machine")

    with pytest.raises(Unavailable, match="another release"):
        made.call(fail, timeout=5)


@pytest.mark.parametrize("free", [0, 1])
def test_a_cluster_that_is_full_is_refused(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray(free, 8).installed(monkeypatch)
    with pytest.raises(Unavailable, match=f"ray://head:1 has {free} CPUs free; 2 or more are needed"):
        RayCluster(Address.parsed("ray://head:1"))
    assert ray.told["ended"]
