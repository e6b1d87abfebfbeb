"""Hosts are woken ahead of need, and none is emptied that is needed: what stays free is Placement's word."""

from dataclasses import replace

import pytest

from pondstack.consolidation.decision.decider import decide
from pondstack.consolidation.decision.settings import Settings
from pondstack.domain.plan import Afterwards

from .builders import host, snapshot, zombie

SETTINGS = Settings(afterwards=Afterwards.KEEP, reserve_percent=20.0)
FULL = host("a", 50.0, used={"VCPU": 20, "MEMORY_MB": 90_000})


def woken(found):
    return [item.host for item in found.actions if str(item.kind) == "wake"]


def test_the_least_borrowed_sleeper_is_woken_while_less_is_free():
    found = decide(snapshot(FULL, zombie("x", 64), zombie("y", 0)), SETTINGS)
    assert (woken(found), found.effect.hosts_woken, found.effect.migrations) == (["y"], 1, 0)
    more = decide(snapshot(FULL, zombie("x", 64), zombie("y", 0)), replace(SETTINGS, reserve_percent=60.0))
    assert woken(more) == ["y", "x"]


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ({"VCPU": 20, "MEMORY_MB": 80_000}, []),
        ({"VCPU": 20, "MEMORY_MB": 80_001}, ["x"]),
        ({"VCPU": 33, "MEMORY_MB": 0}, ["x"]),
    ],
)
def test_of_each_class_the_reserve_is_free(used, expected):
    assert woken(decide(snapshot(host("a", 50.0, used=used), zombie("x", 0)), SETTINGS)) == expected


def test_without_a_reserve_nobody_is_woken_ahead():
    assert decide(snapshot(FULL, zombie("x", 0)), replace(SETTINGS, reserve_percent=0.0)).actions == ()


def test_a_host_that_is_needed_for_it_is_not_emptied():
    idle = (host("b", 1.0), host("c", 2.0))
    found = decide(snapshot(FULL, *idle), SETTINGS)
    assert [item.host for item in found.actions] == ["b"]
    assert found.left_out["c"] == "20 % of what may be claimed of awake hosts stays free"
    assert decide(snapshot(FULL, *idle), replace(SETTINGS, reserve_percent=0.0)).effect.hosts_emptied == 2


def test_memory_that_a_sleeper_lends_counts_once_it_is_awake():
    """While it sleeps Placement keeps it out of what may be claimed."""
    lends = replace(zombie("x", 0), capacity={"VCPU": 40, "MEMORY_MB": 0}, lends_mib=100_000)
    assert woken(decide(snapshot(FULL, lends, zombie("y", 1)), SETTINGS)) == ["x"]


def test_what_nobody_may_claim_is_no_reserve():
    closed = replace(host("b", 1.0), capacity=None)
    assert woken(decide(snapshot(FULL, closed, zombie("x", 0)), SETTINGS)) == ["x"]
