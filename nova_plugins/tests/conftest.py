"""Fixtures of the plugins' tests: Nova's objects registered, and a rack of two pools that tests may bend."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from nova import objects

from pondstack.rpc.wire import PoolView, Snapshot
from pondstack_nova.scheduler import snapshot

UUID = "00000000-0000-0000-0000-00000000000%d"


@pytest.fixture(autouse=True, scope="session")
def nova_objects() -> None:
    """Register Nova's versioned objects once."""
    objects.register_all()


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

        def fetch() -> Snapshot:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        cache = snapshot.SnapshotCache(fetch, interval_seconds=3600, max_age_seconds=30)
        snapshot.reset(cache)
        cache.newer(5)
        return cache

    yield use
    snapshot.reset()


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
