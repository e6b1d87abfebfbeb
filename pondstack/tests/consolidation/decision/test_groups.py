"""Nova's server groups: no plan names a destination that would break one."""

from dataclasses import replace

import pytest

from pondstack.consolidation.decision.decider import decide
from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import Group, Snapshot
from pondstack.domain.plan import Afterwards

from .builders import host, server, snapshot, zombie

SETTINGS = Settings(afterwards=Afterwards.KEEP)


def grouped(cloud: Snapshot, *members: str, together: bool = False) -> Snapshot:
    group = Group("g", frozenset(members), together)
    return replace(cloud, groups=dict.fromkeys(members, group))


def moves(found):
    return {item.server_uuid: item.destination for item in found.actions if item.server_uuid}


def test_members_that_are_to_be_apart_are_not_put_together():
    cloud = snapshot(host("a", 10.0), host("b", 60.0), host("c", 50.0), server("one", "a"), server("two", "b"))
    assert moves(decide(cloud, SETTINGS)) == {"one": "b"}
    assert moves(decide(grouped(cloud, "one", "two"), SETTINGS)) == {"one": "c"}
    only_b = snapshot(host("a", 10.0), host("b", 60.0), server("one", "a"), server("two", "b"))
    assert decide(grouped(only_b, "one", "two"), SETTINGS).actions == ()


def test_nor_where_another_one_goes_by_the_same_plan():
    servers = (server("one", "a"), server("two", "b"))
    cloud = snapshot(host("a", 5.0), host("b", 6.0), host("c", 60.0), host("d", 50.0), *servers)
    assert moves(decide(cloud, SETTINGS)) == {"one": "c", "two": "c"}
    assert moves(decide(grouped(cloud, "one", "two"), SETTINGS)) == {"one": "c", "two": "d"}


def test_a_host_that_is_not_emptied_after_all_leaves_no_trace():
    """`one` found a place on c, `big` none: a is not emptied, and c is free for the other member."""
    servers = (server("one", "a"), server("big", "a", cpus=0.4, mib=200_000), server("two", "b"))
    cloud = snapshot(host("a", 5.0), host("b", 6.0), host("c", 60.0), *servers)
    found = decide(grouped(cloud, "one", "two"), SETTINGS)
    assert moves(found) == {"two": "c"}
    assert found.left_out["a"] == "server big fits on no other host"


def test_members_that_are_to_be_together_stay():
    cloud = snapshot(host("a", 10.0), host("b", 60.0), server("one", "a"), server("two", "a"))
    found = decide(grouped(cloud, "one", "two", together=True), SETTINGS)
    assert found.actions == ()
    assert "stays with the others of server group g (affinity)" in found.left_out["a"]
    assert moves(decide(grouped(cloud, "one", "deleted", together=True), SETTINGS)) == {"one": "b", "two": "b"}


def test_one_that_has_to_stay_leaves_no_overloaded_host_either():
    cloud = snapshot(host("a", 95.0), host("b", 10.0), server("one", "a", cpus=3.0), server("two", "a", cpus=2.5))
    assert set(moves(decide(cloud, replace(SETTINGS, most_emptied=0)))) == {"one"}
    both = decide(grouped(cloud, "one", "two", together=True), replace(SETTINGS, most_emptied=0))
    assert moves(both) == {}
    assert both.effect.overloaded_left == 1


@pytest.mark.parametrize("candidates", [{}, {"one": frozenset({"b"})}])
def test_a_sleeper_is_woken_only_for_a_server_that_may_go_there(candidates):
    cloud = snapshot(host("b", 95.0), zombie("z", 0), server("one", "b", cpus=2.0), candidates=candidates)
    assert (moves(decide(cloud, SETTINGS)) == {"one": "z"}) is not bool(candidates)
