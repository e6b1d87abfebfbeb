"""Neat's four steps together, by Zombieland's rules."""

from dataclasses import replace

import pytest

from pondstack.consolidation.decision.decider import decide, drain
from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import HostState, Reading
from pondstack.domain.errors import BadRequest
from pondstack.domain.plan import Afterwards

from .builders import host, server, snapshot, zombie

SETTINGS = Settings(afterwards=Afterwards.KEEP, idle_percent=53.84, asleep_percent=12.67)


def steps(decision):
    return [(str(item.kind), item.chain, item.server_uuid, item.destination) for item in decision.actions]


def test_an_underloaded_host_is_emptied_lends_and_sleeps():
    found = decide(
        snapshot(host("a", 10.0), host("b", 50.0), server("one", "a"), server("two", "a", cpus=0.4)),
        replace(SETTINGS, afterwards=Afterwards.SUSPEND, host_watts=100.0),
    )
    assert steps(found) == [
        ("disable", "a", "", ""),
        ("live-migrate", "a", "one", "b"),
        ("live-migrate", "a", "two", "b"),
        ("suspend", "a", "", ""),
    ]
    effect = found.effect
    assert (effect.hosts_emptied, effect.migrations, effect.moved_mib, effect.gained_mib) == (1, 2, 2048, 100_000)
    assert effect.saved_watts == pytest.approx(41.17)
    assert effect.worst_load_percent == pytest.approx(100 * 5.9 / 8, abs=0.05)
    assert "50.0 %" in found.left_out["b"]


def test_all_of_a_host_s_servers_find_a_place_or_none_moves():
    full = host("b", 78.0)  # 0.2 CPUs up to its threshold
    servers = (server("one", "a", cpus=0.1), server("two", "a", cpus=0.2))
    found = decide(snapshot(host("a", 10.0), full, *servers), SETTINGS)
    assert found.actions == ()
    assert found.left_out["a"] == "server one fits on no other host"


def test_no_destination_is_loaded_beyond_its_threshold():
    found = decide(snapshot(host("a", 10.0), host("b", 75.0), server("one", "a", cpus=0.5)), SETTINGS)
    assert [item[3] for item in steps(found)] == ["", "b"]
    found = decide(snapshot(host("a", 10.0), host("b", 75.0), server("one", "a", cpus=0.51)), SETTINGS)
    assert found.actions == ()


def test_placement_s_room_is_never_exceeded():
    """As much memory is free by its kernel, but it is claimed (Watcher's bug 2156473)."""
    tight = host("b", 50.0, used={"MEMORY_MB": 99_000})
    assert decide(snapshot(host("a", 10.0), tight, server("one", "a", mib=1001)), SETTINGS).actions == ()
    assert decide(snapshot(host("a", 10.0), tight, server("one", "a", mib=1000)), SETTINGS).effect.migrations == 1


def test_two_servers_do_not_get_the_same_room():
    servers = (server("one", "a", mib=1000), server("two", "a", mib=1000))
    tight = host("b", 50.0, used={"MEMORY_MB": 98_001})
    assert decide(snapshot(host("a", 10.0), tight, *servers), SETTINGS).actions == ()
    room = replace(tight, used={"MEMORY_MB": 98_000})
    assert decide(snapshot(host("a", 10.0), room, *servers), SETTINGS).effect.migrations == 2


def test_a_class_that_a_host_does_not_have_is_no_room():
    claim = {"VCPU": 2, "MEMORY_MB": 1024, "CUSTOM_GPU": 1}
    assert decide(snapshot(host("a", 10.0), host("b", 50.0), server("one", "a", claim=claim)), SETTINGS).actions == ()


def test_thirty_percent_of_a_working_set_has_to_fit():
    tight = host("b", 50.0, free_mib=Reading(300.0, 0.0))
    guest = server("one", "a", mib=4096, extendable=True, working_set_mib=Reading(1000.0, 0.0))
    assert decide(snapshot(host("a", 10.0), tight, guest), SETTINGS).effect.migrations == 1
    larger = replace(guest, working_set_mib=Reading(1004.0, 0.0))
    assert decide(snapshot(host("a", 10.0), tight, larger), SETTINGS).actions == ()


def test_placement_s_candidates_count():
    items = (host("a", 10.0), host("b", 60.0), host("c", 50.0), server("one", "a"))
    assert steps(decide(snapshot(*items), SETTINGS))[1][3] == "b"
    only = decide(snapshot(*items, candidates={"one": frozenset({"c"})}), SETTINGS)
    assert steps(only)[1][3] == "c"
    assert decide(snapshot(*items, candidates={"one": frozenset()}), SETTINGS).actions == ()


def test_a_host_that_takes_servers_is_not_emptied_as_well():
    found = decide(snapshot(host("a", 5.0), host("b", 10.0), server("one", "a"), server("two", "b")), SETTINGS)
    assert [item[1] for item in steps(found)] == ["a", "a"]
    assert found.left_out["b"] == "it takes servers of others in this plan"


def test_some_hosts_stay_awake():
    found = decide(snapshot(host("a", 0.0), host("b", 0.0)), SETTINGS)
    assert found.effect.hosts_emptied == 1
    assert found.left_out["b"] == "1 hosts stay awake"
    assert decide(snapshot(host("a", 0.0), host("b", 0.0)), replace(SETTINGS, least_awake=2)).actions == ()


def test_the_budgets_of_a_plan():
    items = (host("a", 5.0), host("b", 6.0), host("c", 60.0), server("one", "a"), server("two", "b"))
    assert decide(snapshot(*items), SETTINGS).effect.hosts_emptied == 2
    assert decide(snapshot(*items), replace(SETTINGS, most_migrations=1)).effect.hosts_emptied == 1
    assert decide(snapshot(*items), replace(SETTINGS, most_emptied=1)).effect.hosts_emptied == 1


def test_an_overloaded_host_loses_as_few_as_needed():
    found = decide(
        snapshot(
            host("a", 85.0),
            host("b", 30.0),
            server("one", "a", cpus=0.6, mib=1024),
            server("two", "a", cpus=0.6, mib=2048),
        ),
        replace(SETTINGS, underload_percent=0.0),
    )
    assert steps(found) == [("live-migrate", "a", "one", "b")]
    assert found.effect.hosts_emptied == found.effect.overloaded_left == 0


def test_the_zombie_that_lends_the_least_is_woken_only_when_nothing_else_fits():
    busy = (host("a", 85.0), server("one", "a", cpus=0.6))
    zombies = (zombie("z1", 900), zombie("z2", 100), zombie("z3", 500))
    awake = decide(snapshot(*busy, *zombies, host("b", 70.0)), SETTINGS)
    assert steps(awake) == [("live-migrate", "a", "one", "b")]
    found = decide(snapshot(*busy, *zombies, host("b", 75.0)), SETTINGS)
    assert steps(found) == [
        ("wake", "z2", "", ""),
        ("live-migrate", "z2", "one", "z2"),
    ]
    assert (found.effect.hosts_woken, found.effect.gained_mib) == (1, -100)


def test_what_cannot_be_relieved_is_told():
    found = decide(snapshot(host("a", 85.0), host("b", 79.0), server("one", "a", cpus=0.6)), SETTINGS)
    assert found.effect.overloaded_left == 1
    assert "overloaded" in found.left_out["a"]


UNKNOWN = [
    ({"load": ()}, "its CPU load is unknown"),
    ({"load_age_seconds": 601.0}, "its CPU load is 601 s old, more than 600 s"),
    ({"cpus": None}, "the number of its CPUs is unknown"),
    ({"free_mib": None}, "its free memory is unknown"),
    ({"memory_mib": Reading(1.0, 601.0)}, "the size of its memory is 601 s old, more than 600 s"),
    ({"capacity": None}, "Placement has no inventory of it"),
    ({"state": HostState.CLOSED, "closed": "nova-compute is down"}, "nova-compute is down"),
]


@pytest.mark.parametrize(("changes", "reason"), UNKNOWN)
def test_a_figure_that_is_unknown_or_old_leaves_a_host_out(changes, reason):
    """Neither emptied nor a destination (Watcher: SUCCEEDED while a metric was missing)."""
    left = replace(host("a", 10.0), **changes)
    found = decide(snapshot(left, host("b", 20.0), server("one", "b")), SETTINGS)
    assert found.actions == ()
    assert found.left_out["a"] == reason


@pytest.mark.parametrize("reading", [None, Reading(10.0, 601.0)])
def test_so_does_that_of_a_server(reading):
    found = decide(snapshot(host("a", 10.0), host("b", 50.0), server("one", "a", used_cpus=reading)), SETTINGS)
    assert found.actions == ()
    assert found.left_out["a"].startswith("the CPU load of server one is ")


def test_a_history_that_is_too_short_leaves_a_host_out():
    items = (host("a", 10.0, 10.0), host("b", 50.0, 50.0, 50.0), server("one", "a"))
    found = decide(snapshot(*items), replace(SETTINGS, overload="mad", readings=3))
    assert found.left_out["a"] == "there are 2 readings of its CPU load, and the algorithm needs 3"


def test_a_server_that_cannot_be_moved_keeps_its_host():
    found = decide(snapshot(host("a", 10.0), host("b", 50.0), server("one", "a", fixed="it is paused")), SETTINGS)
    assert found.left_out["a"] == "server one cannot be moved: it is paused"


def test_the_lifetime_of_a_destination_is_not_drawn_out():
    """LAVA: of two hosts on which it fits, the one whose last server ends later, though it is less tight."""
    items = (
        host("a", 10.0),
        host("b", 60.0),
        host("c", 50.0),
        server("long", "a", remaining_seconds=9e5),
        server("ends-soon", "b", remaining_seconds=60.0),
        server("stays", "c", remaining_seconds=1e6),
    )
    assert steps(decide(snapshot(*items), SETTINGS))[1][3] == "b"
    assert steps(decide(snapshot(*items), replace(SETTINGS, placement="lifetime")))[1][3] == "c"


def test_the_fit_is_by_what_is_scarcest():
    items = (
        host("a", 10.0),
        host("b", 60.0),
        host("c", 50.0, free_mib=Reading(2000.0, 0.0)),
        server("one", "a", cpus=0.1),
    )
    assert steps(decide(snapshot(*items), SETTINGS))[1][3] == "c"
    assert steps(decide(snapshot(*items), replace(SETTINGS, placement="worst-fit")))[1][3] == "b"


def test_an_algorithm_that_is_not_there_is_refused():
    with pytest.raises(BadRequest, match="overload is one of static, mad, iqr, local-regression, not 'best'"):
        decide(snapshot(), replace(SETTINGS, overload="best"))


def test_a_drain_leaves_the_place_to_nova():
    found = drain("a", [server("one", "a")])
    assert [(str(item.kind), item.host, item.destination) for item in found] == [
        ("disable", "a", ""),
        ("live-migrate", "a", ""),
    ]
