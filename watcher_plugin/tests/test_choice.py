"""Whom to suspend and whom to wake, by what must stay free."""

from pondstack_watcher.choice import Choice, Limits, Node, choose

LIMITS = Limits(reserve_percent=20.0, least_awake=1, most_suspended=2, most_servers=0)


def node(name, vcpus=0.0, mib=0.0, **changes):
    return Node(f"uuid of {name}", name, (8.0, 16384.0), (vcpus, mib), **changes)


def names(found):
    return [item.name for item in found.wake], [item.name for item in found.suspend]


def test_the_emptiest_go_first_and_no_more_than_may():
    idle = [node(name) for name in "dcba"]
    assert names(choose(idle, (), LIMITS)) == ([], ["a", "b"])
    assert names(choose(idle[:2], (), LIMITS)) == ([], ["c"]), "one stays awake"


def test_the_reserve_stays_free_of_both():
    idle = [node("a"), node("b", vcpus=6.0, servers=1)]
    assert names(choose(idle, (), LIMITS)) == ([], ["a"])
    assert choose([node("a"), node("b", vcpus=6.5, servers=1)], (), LIMITS) == Choice()
    assert choose([node("a"), node("b", mib=13108.0, servers=1)], (), LIMITS) == Choice()


def test_nodes_with_servers_are_idle_up_to_so_many():
    nodes = [node("a", vcpus=1.0, servers=1), node("b", vcpus=1.0, servers=2)]
    assert choose(nodes, (), LIMITS) == Choice()
    assert names(choose(nodes, (), Limits(20.0, 1, 2, 1))) == ([], ["a"])


def test_below_the_reserve_the_least_borrowed_are_woken_and_none_is_suspended():
    awake = [node("a", vcpus=7.0, servers=3), node("b", vcpus=7.0, servers=3)]
    asleep = [node("x", borrowed_mib=64), node("y", borrowed_mib=0), node("z", borrowed_mib=32)]
    assert names(choose(awake, asleep, LIMITS)) == (["y"], [])
    assert names(choose(awake, asleep, Limits(45.0, 1, 2, 0))) == (["y", "z"], [])


def test_what_cannot_be_had_is_said():
    full = [node("a", vcpus=8.0, servers=8)]
    assert choose(full, [node("x")], Limits(60.0, 1, 2, 0)) == Choice(wake=(node("x"),), missing=True)
