"""Which pools a member of an anti-affinity group keeps away from."""

from types import SimpleNamespace

import pytest
from nova import exception, objects
from nova.conf import CONF
from nova.scheduler import weights
from nova.scheduler.client import report

from pondstack.domain.room import PoolRoom
from pondstack.prediction.serving import static_predictor
from pondstack.rpc.wire import Snapshot, SplitView
from pondstack_nova.filter import PondFilter
from pondstack_nova.flavors import POOL_KEY
from pondstack_nova.scheduler import groups, request_filter, used_splits
from pondstack_nova.weigher import PondAntiAffinityWeigher, all_weighers

MEMBERS = [f"00000000-0000-0000-0000-00000000000{number}" for number in range(1, 5)]


@pytest.fixture
def claims(monkeypatch):
    """What the members claim: pool by member."""
    held: dict[str, str] = {}

    class Client:
        def get_allocs_for_consumer(self, _context, consumer):
            amounts = {"host": {"resources": {"MEMORY_MB": 1024}}}
            if consumer in held:
                amounts[held[consumer]] = {"resources": {"CUSTOM_POND_MEMORY_MB": 1024}}
            return {"allocations": amounts}

    monkeypatch.setattr(report, "report_client_singleton", Client)
    return held


def member(make_spec, policy="anti-affinity", **specs):
    spec = make_spec(**specs)
    spec.instance_group = objects.InstanceGroup(policy=policy, members=MEMBERS, _rules={})
    spec.instance_uuid = MEMBERS[0]
    return spec


def host(name):
    return SimpleNamespace(host=name, nodename=name, allocation_candidates=[], aggregates=[])


@pytest.mark.parametrize(
    ("mode", "policy", "refuses"),
    [
        ("strict", "anti-affinity", True),
        ("strict", "soft-anti-affinity", False),
        ("prefer", "anti-affinity", False),
    ],
)
def test_of_a_group(make_spec, claims, mode, policy, refuses) -> None:
    """The member's own claim, at its former host, is no reason."""
    claims.update({MEMBERS[0]: "p", MEMBERS[1]: "q", MEMBERS[2]: "q"})
    CONF.set_override("pool_anti_affinity", mode, group="pondstack")
    try:
        spread = groups.look(member(make_spec, policy))
    finally:
        CONF.clear_override("pool_anti_affinity", group="pondstack")
    assert spread.members == {"q": 2}
    assert (spread.refuses("q"), spread.refuses("p")) == (refuses, False)


@pytest.mark.parametrize("policy", ["affinity", "soft-affinity"])
def test_other_policies_ask_nothing(make_spec, monkeypatch, policy) -> None:
    monkeypatch.setattr(report, "report_client_singleton", lambda: pytest.fail("asked"))
    assert groups.look(member(make_spec, policy)) == groups.NO_SPREAD
    assert groups.look(make_spec()) == groups.NO_SPREAD
    CONF.set_override("pool_anti_affinity", "off", group="pondstack")
    try:
        assert groups.look(member(make_spec)) == groups.NO_SPREAD
    finally:
        CONF.clear_override("pool_anti_affinity", group="pondstack")


def test_as_many_as_the_group_allows_on_one_host() -> None:
    assert not groups.Spread({"p": 1}, hard=True, most=2).refuses("p")
    assert groups.Spread({"p": 2}, hard=True, most=2).refuses("p")


def test_the_filter(make_spec, claims, make_pool, use_rack) -> None:
    use_rack(Snapshot(1, (make_pool("p", 4, "h1", "h2"), make_pool("q", 2, "h2")), ("h1", "h2")))
    claims[MEMBERS[1]] = "uuid-p"
    spec = member(make_spec, **{POOL_KEY: "1024"})
    assert [item.nodename for item in PondFilter().filter_all([host("h1"), host("h2")], spec)] == ["h2"]


@pytest.mark.parametrize("policy", ["fixed", "auto"])
def test_without_a_pool_that_is_left(make_spec, claims, make_pool, use_rack, use_splits, policy) -> None:
    """A fixed share ends the request, in words; an automatic one is none."""
    use_rack(Snapshot(1, (make_pool("p", 4, "h1"),), ("h1",)))
    claims[MEMBERS[1]] = "uuid-p"
    use_splits(SplitView(1, 1, predictor=static_predictor(25), rooms=(PoolRoom("p", 4096, 4096),)))
    if policy == "fixed":
        with pytest.raises(exception.RequestFilterFailed, match="another member of the anti-affinity group"):
            request_filter.pond_split(None, member(make_spec, pond__policy="fixed", pond__pool_mb="1024"))
        return
    spec = member(make_spec, pond__policy="auto")
    assert not request_filter.pond_split(None, spec)
    assert used_splits.of(spec).split.source == "anti_affinity"


def test_the_weigher(make_spec, claims, make_pool, use_rack) -> None:
    """Soft: the host whose pool has fewest members is first, and none fails."""
    use_rack(Snapshot(1, (make_pool("p", 9, "h1"), make_pool("q", 9, "h2")), ("h1", "h2")))
    claims[MEMBERS[1]] = "uuid-p"
    spec = member(make_spec, "soft-anti-affinity", **{POOL_KEY: "1024"})
    hosts = PondFilter().filter_all([host("h1"), host("h2")], spec)
    assert len(hosts) == 2
    ranked = weights.HostWeightHandler().get_weighed_objects([PondAntiAffinityWeigher()], hosts, spec)
    assert [item.obj.nodename for item in ranked] == ["h2", "h1"]


def test_weighers_that_the_configuration_names_are_not_there_twice() -> None:
    name = "nova.scheduler.weights.affinity.ServerGroupSoftAntiAffinityWeigher"
    assert name.rsplit(".", 1)[1] in {cls.__name__ for cls in all_weighers()}
    CONF.set_override("weight_classes", ["pondstack_nova.weigher.all_weighers", name], group="filter_scheduler")
    try:
        assert name.rsplit(".", 1)[1] not in {cls.__name__ for cls in all_weighers()}
    finally:
        CONF.clear_override("weight_classes", group="filter_scheduler")
