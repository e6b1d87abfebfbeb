"""For servers for which Nova found no host sleepers are woken, where they fit there and nobody awake has room."""

from dataclasses import replace

from pondstack.consolidation.decision.decider import decide
from pondstack.consolidation.decision.settings import Settings
from pondstack.domain.plan import Afterwards

from .builders import host, server, snapshot, zombie

SETTINGS = Settings(afterwards=Afterwards.KEEP)
FULL = host("a", 50.0, used={"VCPU": 40, "MEMORY_MB": 90_000})


def supply(*items, unplaced, **settings):
    return decide(replace(snapshot(*items), unplaced=unplaced), replace(SETTINGS, **settings))


def woken(found):
    return [(str(item.kind), item.host) for item in found.actions]


def lost(uuid, mib=1024, **changes):
    return server(uuid, "", mib=mib, **changes)


def test_the_least_borrowed_sleeper_is_woken():
    found = supply(FULL, zombie("x", 64), zombie("y", 0), unplaced=(lost("v"),))
    assert (woken(found), found.left_out) == ([("wake", "y")], {})
    assert found.effect.hosts_woken == 1


def test_one_on_which_it_does_not_fit_is_not():
    small = replace(zombie("y", 0), capacity={"VCPU": 1, "MEMORY_MB": 100_000})
    assert woken(supply(FULL, zombie("x", 64), small, unplaced=(lost("v"),))) == [("wake", "x")]
    found = supply(FULL, small, unplaced=(lost("v"),))
    assert (woken(found), found.left_out) == ([], {"v": "it fits on no host that sleeps"})


def test_a_burst_wakes_as_many_as_it_needs():
    zombies = tuple(zombie(name, 0) for name in "xyz")
    burst = tuple(lost(f"v{number}", 50_000) for number in range(4))
    assert woken(supply(FULL, *zombies, unplaced=burst)) == [("wake", "x"), ("wake", "y")]
    found = supply(FULL, *zombies, unplaced=burst, most_woken=1)
    assert woken(found) == [("wake", "x")]
    assert set(found.left_out) == {"v2", "v3"}


def test_nobody_is_woken_while_an_awake_host_has_room():
    """However loaded that is: Nova places by claims."""
    found = supply(host("a", 99.0), zombie("x", 0), unplaced=(lost("v"),))
    assert (woken(found), found.left_out) == ([], {"v": "host a, which is awake, has room for its claim"})


def test_memory_that_a_sleeper_lends_counts():
    lends = replace(zombie("x", 0), capacity={"VCPU": 40, "MEMORY_MB": 0}, lends_mib=100_000)
    assert woken(supply(FULL, lends, unplaced=(lost("v"),))) == [("wake", "x")]


def test_what_no_host_has_an_inventory_of_is_not_asked_of_sleepers():
    """A sharing provider has it."""
    claim = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}
    assert woken(supply(FULL, zombie("x", 0), unplaced=(lost("v", claim=claim),))) == [("wake", "x")]


def test_a_server_of_which_too_little_is_known_wakes_nobody():
    found = supply(FULL, zombie("x", 0), unplaced=(lost("v", fixed="unknown"),))
    assert (woken(found), found.left_out) == ([], {"v": "unknown"})


def test_nothing_else_is_done():
    """Neither is anybody relieved, nor emptied."""
    over, idle = host("b", 95.0, used={"VCPU": 40}), host("c", 1.0, used={"VCPU": 40})
    assert woken(supply(over, idle, server("s", "b"), zombie("x", 0), unplaced=(lost("v"),))) == [("wake", "x")]
