"""Histories of hosts and pools that are removed, and broken variants that they catch."""

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest import mock

import pytest

from pondstack.controller.reconcile import actions, reconciler
from pondstack.ledger.pools import Pools
from tests.sim.histories import assert_caught, run_all
from tests.sim.placement import Placement
from tests.sim.removal.mutants import LATE_FENCES, MUTANTS
from tests.sim.removal.plan import draw, draw_late_fences
from tests.sim.run import run

HISTORIES = 24
CHUNK = 12
WITHIN = 150
"""Histories in which each variant must be caught."""


@pytest.mark.parametrize("first", range(0, HISTORIES, CHUNK))
def test_no_history_violates_anything(first: int) -> None:
    met, _ = run_all(draw, range(first, first + CHUNK))
    assert met["host removed"]
    assert met["host removed for ever"]
    assert met["pool removed"]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_variant_is_caught(name: str) -> None:
    assert_caught(MUTANTS[name], draw, WITHIN)


def test_late_fences_fence_nobody_who_is_back_and_would_if_they_counted() -> None:
    met, _ = run_all(draw_late_fences, range(CHUNK))
    assert met["host fenced and back"]
    assert_caught(LATE_FENCES, draw_late_fences, WITHIN)


def test_a_leader_may_find_a_provider_deleted_by_a_former_one() -> None:
    """The former leader's removal of a pool reaches Placement late, between the next one's read and write."""
    outcome = run(draw(101001045))
    assert not outcome.code, outcome.detail


def test_the_sql_ledger_violates_nothing() -> None:
    outcome = run(draw(2), sql=True)
    assert not outcome.code, outcome.detail


def test_the_same_seed_takes_the_same_turns() -> None:
    first, second = (run(draw(7), tracing=True).trace for _ in range(2))
    assert first == second
    assert len(first) > 20


@contextlib.contextmanager
def _dirt_is_forgotten() -> Iterator[None]:
    with mock.patch.object(Pools, "_dirty", return_value=[]):
        yield


@contextlib.contextmanager
def _aggregates_written(**instead: Any) -> Iterator[None]:
    plain = Placement.change_aggregates

    def change(self: Any, uuid: str, decide: Any, **named: Any) -> bool:
        return plain(self, uuid, decide, **named | instead)

    with mock.patch.object(Placement, "change_aggregates", change):
        yield


@contextlib.contextmanager
def _judged_at_promotion() -> Iterator[None]:
    with mock.patch.object(reconciler, "is_for_rounds", lambda action: isinstance(action, actions.COMMANDS)):
        yield


_aggregates_without_fence = partial(_aggregates_written, still=lambda: None)
_removals_write_nothing = partial(_aggregates_written, force=False)

FOUND = {
    "a device came back after its removal with what guests had written": (198, _dirt_is_forgotten, "free_not_zero"),
    "a leader that was paused joined a host to the aggregate that its successor had removed": (
        1641,
        _aggregates_without_fence,
        "not_consistent",
    ),
    "a leader that was paused behind its fence joined a host that was in nothing when its successor removed it": (
        110001223,
        _removals_write_nothing,
        "not_consistent",
    ),
    "a leader that heard nothing took a host for silent at its promotion": (
        140014518,
        _judged_at_promotion,
        "deaf_judged",
    ),
}
"""What these histories found in removals: seed, what takes the mending away, and the violation."""


@pytest.mark.parametrize("problem", FOUND)
def test_what_was_found_is_mended(problem: str) -> None:
    seed, broken, code = FOUND[problem]
    assert not run(draw(seed)).code
    assert run(draw(seed), broken=broken).code == code


def test_an_operator_waits_for_guests_that_are_still_being_moved_away() -> None:
    """The simulated one fenced their source as scrap, and they lost what they still ran with."""
    outcome = run(draw(31002947))
    assert not outcome.code, outcome.detail
