"""Fixtures of the plugins' tests: Nova's objects registered, and a rack of two pools that tests may bend."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import nova.conf
import pytest
from nova import objects

from pondstack.conf import scheduler as conf
from pondstack.rpc.wire import PoolView, Snapshot, SplitView
from pondstack_nova.scheduler import snapshot, split_view

UUID = "00000000-0000-0000-0000-00000000000%d"


@pytest.fixture(autouse=True, scope="session")
def nova_objects() -> None:
    """Register Nova's versioned objects once."""
    objects.register_all()


@pytest.fixture(autouse=True)
def no_wait_for_a_first_view() -> Iterator[None]:
    """A test without a view has none on purpose."""
    conf.register_opts(nova.conf.CONF)
    nova.conf.CONF.set_override("first_view_seconds", 0.0, group="pondstack")
    yield
    nova.conf.CONF.clear_override("first_view_seconds", group="pondstack")


@pytest.fixture
def make_pool() -> Callable[..., PoolView]:
    """Make a pool of 1 GiB slices: `free` of `total` are free, reached by `hosts`."""

    def make(name: str, free: int, *hosts: str, total: int = 16, buffer: int = 1, state: str = "up") -> PoolView:
        return PoolView(f"uuid-{name}", name, state, 1024, total, free, free, buffer, hosts)

    return make


@pytest.fixture
def use_rack() -> Iterator[Callable[..., snapshot.SnapshotCache]]:
    """Give the process a snapshot cache over a list of answers; an exception in it stands for a failed call."""

    def use(*answers: Snapshot | Exception) -> snapshot.SnapshotCache:
        left = list(answers)
        failed = threading.Event()

        def fetch() -> Snapshot:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                failed.set()
                raise answer
            return answer

        cache = snapshot.SnapshotCache(fetch, interval_seconds=3600, max_age_seconds=30)
        snapshot.reset(cache)
        if all(isinstance(answer, Exception) for answer in answers):
            cache.newer(0)
            failed.wait(5)
        else:
            cache.newer(5)
        return cache

    yield use
    snapshot.reset()


class ByHand(split_view.SplitCache):
    """Without a thread: who waits for a newer view asks for it."""

    def _ensure_thread(self) -> None:
        pass

    def newer(self, timeout_seconds: float) -> split_view.SplitBasis | None:  # noqa: ARG002
        return self.latest()[0] if self.refresh(True) else None


@pytest.fixture
def use_splits() -> Iterator[Callable[..., split_view.SplitCache]]:
    """Give the process a cache over answers of split_view; an exception in it stands for a failed call."""

    def use(*answers: SplitView | Exception, clock: Callable[[], float] = time.monotonic) -> split_view.SplitCache:
        left = list(answers)

        def ask(_epoch: int, _version: int, _now: bool, _predictor: str) -> SplitView:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        cache = ByHand(ask, interval_seconds=3600, max_age_seconds=30, clock=clock)
        split_view.reset(cache)
        cache.refresh()
        return cache

    yield use
    split_view.reset()


@pytest.fixture
def make_spec() -> Callable[..., Any]:
    """Make a RequestSpec as nova-scheduler gets it; keywords with __ for a colon are extra specs."""

    def make(memory_mib: int = 4096, **specs: str) -> Any:
        flavor = objects.Flavor(
            name="znuma",
            vcpus=2,
            memory_mb=memory_mib,
            root_gb=0,
            ephemeral_gb=0,
            swap=0,
            extra_specs={key.replace("__", ":"): value for key, value in specs.items()},
        )
        return objects.RequestSpec(
            flavor=flavor,
            image=None,
            is_bfv=True,
            requested_resources=[],
            instance_uuid=UUID % 1,
            project_id="project",
            numa_topology=None,
        )

    return make
