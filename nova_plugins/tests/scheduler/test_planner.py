"""The planner's compiled replay chooses the host that Nova chooses with PondFilter, its CPUWeigher and our weighers."""

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from nova.conf import CONF
from nova.scheduler import weights
from nova.scheduler.weights.cpu import CPUWeigher

from pondstack.domain import host_choice
from pondstack.planner.replay import kernel, policy
from pondstack.planner.replay.state import Pools, Rules, Sockets
from pondstack.rpc.wire import Snapshot
from pondstack_nova import weigher
from pondstack_nova.filter import PondFilter
from pondstack_nova.flavors import POOL_KEY
from pondstack_nova.scheduler import rack

RULES = Rules(1.0, 1.0, 1.0, 1024, 0.0, True)
VCPUS = 8


@pytest.fixture(autouse=True)
def no_wait() -> Iterator[None]:
    """The snapshot does not change: there is nothing to wait for."""
    CONF.set_override("split_timeout_ms", 10, group="pondstack")
    yield
    CONF.clear_override("split_timeout_ms", group="pondstack")


class Cloud:
    """Hosts and pools drawn by chance, as the planner has them and as Nova has them."""

    def __init__(self, chance: random.Random, make_pool: Any) -> None:
        count, size = chance.randint(1, 6), chance.randint(1, 3)
        self.free = [chance.randint(0, 8) for _ in range(-(-count // size))]
        self.buffer = [chance.randint(0, 3) for _ in self.free]
        self.reach = [number // size for number in range(count)] if chance.random() < 0.9 else [-1] * count
        self.pooled = [1024 * chance.randint(0, 4) for _ in range(count)]
        self.cpu = [chance.randint(0, VCPUS) for _ in range(count)]
        self.local = [512 * chance.randint(0, 8) for _ in range(count)]
        names = [f"h{number}" for number in range(count)]
        pools = [
            make_pool(str(pool), free, *(name for name, own in zip(names, self.reach, strict=True) if own == pool))
            for pool, free in enumerate(self.free)
        ]
        views = tuple(
            rack.PoolView(**{**view.to_wire(), "buffer_slices": kept, "hosts": tuple(view.hosts)})
            for view, kept in zip(pools, self.buffer, strict=True)
        )
        self.snapshot = Snapshot(1, views, tuple(names), pool_mib_by_host=dict(zip(names, self.pooled, strict=True)))
        self.hosts = [self._host(name, number) for number, name in enumerate(names)]

    def _host(self, name: str, number: int) -> Any:
        """Return Nova's HostState: free_ram_mb has the pool memory of its guests off."""
        return SimpleNamespace(
            host=name,
            nodename=name,
            number=number,
            aggregates=[],
            allocation_candidates=[],
            free_ram_mb=self.local[number] - self.pooled[number],
            cpu_allocation_ratio=1.0,
            vcpus_total=VCPUS,
            vcpus_used=VCPUS - self.cpu[number],
        )

    def admits(self, number: int, cpu: int, local_mib: int, slices: int) -> bool:
        """Say whether Placement would: the buffer of a pool is reserved there."""
        pool = self.reach[number]
        pooled = not slices or (pool >= 0 and slices <= self.free[pool] - self.buffer[pool])
        return cpu <= self.cpu[number] and local_mib <= self.local[number] and pooled


def by_nova(cloud: Cloud, spec: Any, cpu: int, local_mib: int, slices: int) -> int:
    """Return the number of the host that Nova chooses, -1 for none."""
    admitted = [host for host in cloud.hosts if cloud.admits(host.number, cpu, local_mib, slices)]
    passed = list(PondFilter().filter_all(admitted, spec))
    weighers = [CPUWeigher(), weigher.LocalRAMWeigher(), weigher.PondWeigher()]
    ranked = weights.HostWeightHandler().get_weighed_objects(weighers, passed, spec)
    return ranked[0].obj.number if ranked else -1


def by_planner(cloud: Cloud, cpu: int, local_mib: int, slices: int) -> int:
    """Return the socket that the compiled replay chooses."""
    free = np.array(cloud.free, np.int32)
    ring = int(free.sum())
    first = np.concatenate([[0], np.cumsum(free)]).astype(np.int64)
    buffer, head = np.array(cloud.buffer, np.int32), np.zeros(len(free), np.int32)
    none, never = np.zeros(ring), np.full(ring, -1, np.int64)
    pools = Pools(free, buffer, first, head, free.copy(), free.copy(), never, none, np.zeros(len(free), np.bool_))
    columns = ([VCPUS] * len(cloud.cpu), cloud.cpu, cloud.local, cloud.pooled, cloud.reach)
    total_cpu, free_cpu, local, pooled, pool = (np.array(items, np.int32) for items in columns)
    sockets = Sockets(total_cpu, free_cpu, local, pooled, pool, np.zeros(len(pool), np.bool_))
    comforts = np.zeros(len(free))
    if slices:
        kernel.look(pools, slices, 0, comforts)
    scratch = np.empty(len(cloud.cpu), np.int32)
    return int(kernel.choose(sockets, comforts, cpu, local_mib, 1024 * slices, RULES, scratch))


def test_both_choose_the_same_host(make_pool, make_spec, use_rack) -> None:
    """Two hundred clouds by chance, with and without pool memory."""
    chance, placed = random.Random(22), 0
    for number in range(200):
        cloud = Cloud(chance, make_pool)
        use_rack(cloud.snapshot)
        cpu, local_mib, slices = chance.randint(1, 4), 512 * chance.randint(0, 4), chance.choice([0, 0, 1, 2, 4])
        spec = make_spec(**({POOL_KEY: str(1024 * slices)} if slices else {}))
        chosen = by_nova(cloud, spec, cpu, local_mib, slices)
        assert by_planner(cloud, cpu, local_mib, slices) == chosen, f"cloud {number}"
        placed += chosen >= 0
    assert placed > 100


def test_scheduler_and_planner_call_the_same_functions() -> None:
    """What is compiled is the very function that filter and weighers call."""
    assert policy.slices_needed.py_func is rack.host_choice.slices_needed
    assert policy.comfort.py_func is rack.host_choice.comfort is host_choice.comfort
    assert policy.pool_weight.py_func is weigher.pool_weight
    assert policy.local_ram_mib.py_func is weigher.local_ram_mib
