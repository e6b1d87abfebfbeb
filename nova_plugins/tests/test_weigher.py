"""PondWeigher and LocalRAMWeigher."""

from types import SimpleNamespace
from typing import Any

import pytest
from nova.conf import CONF
from nova.scheduler import weights
from nova.scheduler.weights.ram import RAMWeigher

from pondstack.rpc.wire import Snapshot
from pondstack_nova.flavors import POOL_KEY
from pondstack_nova.weigher import LocalRAMWeigher, PondWeigher, all_weighers


def weigh(spec: Any, *weighers: Any, **free_ram_mb: int) -> list[str]:
    """Return host names, best first, as Nova's handler ranks them."""
    hosts = [
        SimpleNamespace(host=name, nodename=name, free_ram_mb=free, aggregates=[]) for name, free in free_ram_mb.items()
    ]
    ranked = weights.HostWeightHandler().get_weighed_objects([cls() for cls in weighers], hosts, spec)
    return [weighed.obj.nodename for weighed in ranked]


def test_pool_vms_prefer_the_comfortable_pool(make_pool, make_spec, use_rack) -> None:
    """Room in the local memory does not outweigh a pool that would lose its buffer."""
    pools = (make_pool("tight", 1, "a"), make_pool("roomy", 9, "b"))
    use_rack(Snapshot(1, pools, usable_hosts=("a", "b")))
    assert weigh(make_spec(**{POOL_KEY: "1024"}), PondWeigher, a=1, b=1) == ["b", "a"]


def test_comfortable_pools_are_equal(make_pool, make_spec, use_rack) -> None:
    """Beyond the comfort other weighers decide."""
    pools = (make_pool("p", 16, "a"), make_pool("q", 9, "b"))
    use_rack(Snapshot(1, pools, usable_hosts=("a", "b")))
    assert weigh(make_spec(**{POOL_KEY: "1024"}), PondWeigher, LocalRAMWeigher, a=1, b=2) == ["b", "a"]


def test_others_prefer_hosts_without_a_pool_when_equal(make_pool, make_spec, use_rack) -> None:
    """Only a tie-breaker: a host with more RAM wins all the same."""
    use_rack(Snapshot(1, (make_pool("p", 16, "a"),), usable_hosts=("a",)))
    assert weigh(make_spec(), PondWeigher, LocalRAMWeigher, a=4096, b=4096) == ["b", "a"]
    assert weigh(make_spec(), PondWeigher, LocalRAMWeigher, a=4200, b=4096) == ["a", "b"]


def test_without_a_snapshot_nothing_changes(make_spec, use_rack) -> None:
    """Service down: Nova's own order."""
    use_rack(ConnectionError("down"))
    assert weigh(make_spec(), PondWeigher, LocalRAMWeigher, a=1, b=2) == ["b", "a"]


def test_ram_is_weighed_without_pool_memory(make_spec, use_rack) -> None:
    """Host a has 8 GiB of pool guests, which Nova takes off its free RAM: it is really the emptier one."""
    use_rack(Snapshot(1, pool_mib_by_host={"a": 8192}))
    assert weigh(make_spec(), RAMWeigher, a=2048, b=4096) == ["b", "a"]
    assert weigh(make_spec(), LocalRAMWeigher, a=2048, b=4096) == ["a", "b"]


def test_multiplier() -> None:
    """0 turns PondWeigher off; an aggregate's metadata goes before the option."""
    weigher = PondWeigher()
    state = SimpleNamespace(aggregates=[])
    assert weigher.weight_multiplier(state) == 1.0
    CONF.set_override("pool_weight_multiplier", 2.5, group="pondstack")
    try:
        assert weigher.weight_multiplier(state) == 2.5
    finally:
        CONF.clear_override("pool_weight_multiplier", group="pondstack")
    aggregate = SimpleNamespace(metadata={"pool_weight_multiplier": "0"})
    assert weigher.weight_multiplier(SimpleNamespace(aggregates=[aggregate], host="a")) == 0


@pytest.mark.parametrize("cls", [PondWeigher, LocalRAMWeigher])
def test_all_weighers_supersedes_nova_s(cls: type) -> None:
    """Nova's list, RAMWeigher replaced."""
    assert cls in all_weighers()
    assert RAMWeigher not in all_weighers()
    assert len(all_weighers()) == len(weights.all_weighers()) + 2


def test_nova_loads_the_list_by_its_path() -> None:
    """As [filter_scheduler] weight_classes names it."""
    loaded = weights.HostWeightHandler().get_matching_classes(["pondstack_nova.weigher.all_weighers"])
    assert set(loaded) == set(all_weighers())
