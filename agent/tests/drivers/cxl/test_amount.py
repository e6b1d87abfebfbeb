"""Guests of a node never hold more than is online of it; what is counted, on both sides."""

from pathlib import Path

import pytest

from pondstack.devices import pool_uuid
from pondstack.domain.errors import DeviceFailed
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant
from pondstack_agent.drivers.cxl import amount
from pondstack_agent.drivers.cxl.allocations import OFFLINE_FAILED, OFFLINING, ONLINE, Allocations
from pondstack_agent.drivers.cxl.memory import Blocks
from pondstack_agent.drivers.cxl.sysfs import Sysfs

POOL = pool_uuid("pool-1")


def grant(tag: str, *extents: Extent, pool: str = POOL) -> Grant:
    """Slices of an allocation."""
    return Grant(tag, f"guest-of-{tag}", "host1", pool, "pool0", {}, 1024, extents, 1)


@pytest.fixture
def allocations(tmp_path: Path) -> Allocations:
    """No allocation yet."""
    return Allocations(tmp_path, lambda _name: None)


def test_allocations_that_guests_may_use_count(allocations: Allocations) -> None:
    for tag, state in (("on", ONLINE), ("begun", ""), ("going", OFFLINING), ("stuck", OFFLINE_FAILED), ("mine", "")):
        allocations.begin(grant(tag, Extent(0, 1), Extent(4, 2)))
        if state:
            allocations.put_state(tag, state)
    allocations.begin(grant("elsewhere", Extent(0, 1), pool=pool_uuid("pool-2")))
    allocations.put_state("elsewhere", ONLINE)
    held = allocations.held(grant("mine", Extent(0, 1)).to_wire())
    assert amount.by_allocation(held) == {"on": 3072, "mine": 3072}


def test_all_that_is_online_may_be_held_and_no_more() -> None:
    amount.check_node(1, {"a": 1024, "b": 2048}, 3072)
    with pytest.raises(DeviceFailed, match=r"node 1 .* 2944 MiB online.*hold 3072 MiB.*\(a, b\).*daxctl online-memory"):
        amount.check_node(1, {"a": 1024, "b": 2048}, 2944)


def test_blocks_that_are_online_count(tmp_path: Path) -> None:
    (tmp_path / "devices/system/memory").mkdir(parents=True)
    (tmp_path / "devices/system/memory/block_size_bytes").write_text("8000000\n")
    states = {"memory32": "online", "memory33": "going-offline", "memory34": "offline", "memory35": "online"}
    for name, state in states.items():
        (tmp_path / f"devices/system/node/node1/{name}").mkdir(parents=True)
        (tmp_path / f"devices/system/node/node1/{name}/state").write_text(f"{state}\n")
    (tmp_path / "devices/system/node/node1/memory_failure").mkdir()
    assert Blocks(Sysfs(tmp_path)).online_mib(1) == 256
    assert Blocks(Sysfs(tmp_path)).online_mib(2) == 0


def test_slices_of_another_allocation_are_not_taken_again(allocations: Allocations) -> None:
    allocations.begin(grant("a", Extent(0, 2)))
    amount.check_disjoint({0, 1}, allocations.indexes(POOL, but="a"), "pool0")
    with pytest.raises(DeviceFailed, match=r"slices \[1\] of pool pool0.*audit"):
        amount.check_disjoint({1, 2}, allocations.indexes(POOL, but="b"), "pool0")
