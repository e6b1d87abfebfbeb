"""Placement is asked where servers may go, as seldom as may be, and what it does not say is no place."""

from dataclasses import replace
from typing import Any

import pytest

from pondstack.consolidation.decision.settings import Settings
from pondstack.controller.consolidation import candidates as module
from pondstack.controller.consolidation.candidates import Candidates
from pondstack.domain.plan import Afterwards
from pondstack.tests.consolidation.decision.builders import host, server, snapshot, zombie

SETTINGS = Settings(afterwards=Afterwards.KEEP)


class PlayedPlacement:
    """Admits the providers in `admits`; keeps what it was asked."""

    def __init__(self, *admits: str) -> None:
        self.admits = set(admits)
        self.asked: list[tuple[dict[str, int], tuple[str, ...]]] = []

    def candidates(self, amounts: dict[str, int], traits: tuple[str, ...]) -> set[str]:
        self.asked.append((amounts, traits))
        return self.admits


def named(name: str, *load: float, **changes: Any) -> Any:
    return host(name, *load, provider_uuid=f"rp-{name}", **changes)


def decided(placement: PlayedPlacement, *items: Any, **how: Any) -> Any:
    return Candidates(placement).decide(snapshot(*items, **how), SETTINGS)  # type: ignore[arg-type]


def destinations(found: Any) -> list[str]:
    return [item.destination for item in found.actions if item.destination]


HOSTS = (named("a", 10.0), named("b", 60.0), named("c", 50.0))


def test_a_host_that_placement_refuses_is_no_destination():
    placement = PlayedPlacement("rp-a", "rp-c")
    found = decided(placement, *HOSTS, server("one", "a", traits=("CUSTOM_FAST",)))
    assert destinations(found) == ["c"]
    assert placement.asked == [({"VCPU": 2, "MEMORY_MB": 1024}, ("CUSTOM_FAST",))]


def test_where_it_refuses_all_the_plan_says_so():
    found = decided(PlayedPlacement(), *HOSTS, server("one", "a"))
    assert found.actions == ()
    assert found.left_out["a"] == "server one fits on no other host"


def test_servers_that_are_alike_are_asked_for_once_and_those_that_stay_never():
    placement = PlayedPlacement("rp-a", "rp-b", "rp-c")
    stays = [server(f"s{number}", "c", mib=2000 + number) for number in range(5)]
    found = decided(placement, *HOSTS, server("one", "a"), server("two", "a"), *stays)
    assert destinations(found) == ["b", "b"]
    assert len(placement.asked) == 1


def test_the_reach_of_a_pool_counts_beside_it():
    placement = PlayedPlacement("rp-a", "rp-c")
    items = (*HOSTS, server("one", "a"))
    assert destinations(decided(placement, *items, candidates={"one": frozenset({"b"})})) == []
    assert destinations(decided(placement, *items, candidates={"one": frozenset({"b", "c"})})) == ["c"]


def test_what_cannot_be_asked_for_stays_and_the_plan_says_so():
    placement = PlayedPlacement("rp-a", "rp-b", "rp-c")
    found = decided(placement, *HOSTS, server("one", "a", traits=None))
    assert found.actions == ()
    assert module.UNKNOWN in found.left_out["a"]
    assert placement.asked == []


def test_questions_are_bounded_and_what_was_not_asked_for_stays(monkeypatch):
    monkeypatch.setattr(module, "MOST_QUESTIONS", 1)
    placement = PlayedPlacement("rp-a", "rp-b", "rp-c", "rp-d")
    items = (*HOSTS, named("d", 11.0), server("one", "a"), server("two", "d", mib=2048))
    found = decided(placement, *items)
    assert len(placement.asked) == 1
    assert len(destinations(found)) == 1
    assert module.UNASKED in " ".join(found.left_out.values())


@pytest.mark.parametrize(("traits", "woken"), [((), ["z"]), (("CUSTOM_FAST",), [])])
def test_a_sleeper_of_which_nothing_can_be_claimed_is_woken_unless_traits_are_wanted(traits, woken):
    asleep = replace(zombie("z", 0), provider_uuid="rp-z", used={"MEMORY_MB": 0})
    found = decided(PlayedPlacement("rp-b"), named("b", 95.0), asleep, server("one", "b", cpus=2.0, traits=traits))
    assert destinations(found) == woken
