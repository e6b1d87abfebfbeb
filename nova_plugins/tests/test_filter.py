"""PondFilter: who passes, with which candidates, and what happens without a snapshot."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from nova.conf import CONF

from pondstack.domain.sizing import Features, Split
from pondstack.rpc.wire import Snapshot
from pondstack_nova.counters import HOST_REJECTS
from pondstack_nova.filter import PondFilter
from pondstack_nova.flavors import POOL_KEY
from pondstack_nova.scheduler import defaults, used_splits
from pondstack_nova.scheduler.defaults import Origin
from pondstack_nova.stats import BY_CLAIM, NO_POOL_MEMORY


@pytest.fixture(autouse=True)
def short_wait() -> Iterator[None]:
    """Do not wait long for a snapshot that will not come."""
    CONF.set_override("split_timeout_ms", 100, group="pondstack")
    yield
    CONF.clear_override("split_timeout_ms", group="pondstack")


def host(name: str, *pools: str) -> Any:
    """Return a HostState with one allocation candidate for each pool."""
    candidates = [
        {"allocations": {"c": {"resources": {"VCPU": 1}}, pool: {"resources": {"CUSTOM_POND_MEMORY_MB": 1024}}}}
        for pool in pools
    ]
    return SimpleNamespace(host=name, nodename=name, allocation_candidates=candidates)


def test_a_host_that_refuses_by_its_own_word(use_rack, make_pool, make_spec) -> None:
    """Its nova-compute says so in its statistics; guests without pool memory go there all the same."""
    use_rack(Snapshot(1, (make_pool("p", 4, "h1", "h2"),), ("h1", "h2")))
    hosts = [host("h1", "uuid-p"), host("h2", "uuid-p")]
    hosts[0].stats = {NO_POOL_MEMORY: "[libvirt] file_backed_memory is set on this host"}
    before = HOST_REJECTS.counts().get("host_refuses", 0)
    spec = make_spec()
    assert names(PondFilter().filter_all(hosts, spec)) == ["h1", "h2"]
    spec.flavor.extra_specs = {POOL_KEY: "1024"}
    assert names(PondFilter().filter_all(hosts, spec)) == ["h2"]
    assert HOST_REJECTS.counts()["host_refuses"] == before + 1


@pytest.mark.parametrize(
    ("origin", "passed"),
    [(Origin.OPTION, ["h3"]), (Origin.AGGREGATE, ["h3"]), (Origin.PROJECT, ["h2", "h3"]), (None, ["h1", "h2", "h3"])],
)
def test_hosts_that_take_no_plain_flavor_with_pool_memory(use_rack, make_pool, make_spec, origin, passed) -> None:
    """One has a nova-compute of the former release, one an aggregate with none; flavors' own specs go anywhere."""
    use_rack(Snapshot(1, (make_pool("p", 4, "h1", "h2", "h3"),), ("h1", "h2", "h3")))
    hosts = [host(name, "uuid-p") for name in ("h1", "h2", "h3")]
    for state in hosts[1:]:
        state.stats = {BY_CLAIM: "1"}
    hosts[1].aggregates = [SimpleNamespace(name="a", metadata={"pond:default_policy": "none"})]
    spec = make_spec(**{POOL_KEY: "1024"})
    defaults.mark(spec, plain=origin is not None)
    split = Split(3072, 1024, "static", 1.0, "")
    used_splits.put_on(spec, used_splits.Decision(Features(spec.instance_uuid, 4096, 2), split, origin))
    assert names(PondFilter().filter_all(hosts, spec)) == passed


def pools_of(state: Any) -> list[str]:
    """Return the pools of a HostState's candidates in order."""
    return [next(uuid for uuid in candidate["allocations"] if uuid != "c") for candidate in state.allocation_candidates]


def names(hosts: Any) -> list[str]:
    """Return host names."""
    return [state.nodename for state in hosts]


def test_only_hosts_with_a_fitting_pool_pass(make_pool, make_spec, use_rack) -> None:
    """Unusable, pool-less and full ones fail."""
    pools = (make_pool("p", 2, "a", "b"), make_pool("q", 0, "c"))
    use_rack(Snapshot(1, pools, usable_hosts=("a", "c", "d"), unusable_hosts={"b": "disabled"}))
    hosts = [host("a", "uuid-p"), host("b", "uuid-p"), host("c", "uuid-q"), host("d")]
    assert names(PondFilter().filter_all(hosts, make_spec(**{POOL_KEY: "1024"}))) == ["a"]


def test_candidates_are_narrowed_to_fitting_pools_best_first(make_pool, make_spec, use_rack) -> None:
    """Nova claims the first candidate: it must be of a pool with room, the most comfortable one."""
    pools = (make_pool("full", 0, "a"), make_pool("tight", 1, "a"), make_pool("roomy", 9, "a"))
    use_rack(Snapshot(1, pools, usable_hosts=("a",)))
    (passed,) = PondFilter().filter_all(
        [host("a", "uuid-full", "uuid-tight", "uuid-roomy")], make_spec(**{POOL_KEY: "1024"})
    )
    assert pools_of(passed) == ["uuid-roomy", "uuid-tight"]


def test_a_host_fails_when_placement_offers_another_pool(make_pool, make_spec, use_rack) -> None:
    """The pool with room must be one that Placement has a candidate of."""
    use_rack(Snapshot(1, (make_pool("p", 9, "a"),), usable_hosts=("a",)))
    assert names(PondFilter().filter_all([host("a", "uuid-q")], make_spec(**{POOL_KEY: "1024"}))) == []


def test_without_pool_memory_all_pass_untouched(make_spec, use_rack) -> None:
    """The very same list, and no look at the snapshot."""
    use_rack(ConnectionError("down"))
    hosts = [host("a"), host("b")]
    assert PondFilter().filter_all(hosts, make_spec()) is hosts


def test_service_down(make_spec, use_rack, caplog: pytest.LogCaptureFixture) -> None:
    """No snapshot: requests with pool memory fail on every host, and the log says why."""
    use_rack(ConnectionError("down"))
    before = HOST_REJECTS.counts().get("no_snapshot", 0)
    with caplog.at_level("INFO", logger="pondstack_nova.filter"):
        assert names(PondFilter().filter_all([host("a", "uuid-p")], make_spec(**{POOL_KEY: "1024"}))) == []
    assert "Host a fails" in caplog.text
    assert "no snapshot from pondstack-controller yet" in caplog.text
    assert HOST_REJECTS.counts()["no_snapshot"] == before + 1


def test_a_newer_view_is_waited_for_before_all_fail(make_pool, make_spec, use_rack) -> None:
    """Slices that came free since the last view count."""
    full = Snapshot(1, (make_pool("p", 0, "a"),), usable_hosts=("a",))
    free = Snapshot(1, (make_pool("p", 4, "a"),), usable_hosts=("a",))
    use_rack(full, free)
    assert names(PondFilter().filter_all([host("a", "uuid-p")], make_spec(**{POOL_KEY: "1024"}))) == ["a"]


def test_rejects_are_logged_with_their_reason(make_pool, make_spec, use_rack, caplog) -> None:
    """At debug: a rack of thousands of hosts must not fill the log."""
    use_rack(Snapshot(1, (make_pool("p", 9, "a"),), usable_hosts=("a",)))
    with caplog.at_level("DEBUG", logger="pondstack_nova.filter"):
        list(PondFilter().filter_all([host("a", "uuid-p"), host("z")], make_spec(**{POOL_KEY: "1024"})))
    assert "Host z fails" in caplog.text
    assert "host has no pondstack-agent" in caplog.text
