"""Histories of hosts that hold slices for themselves, and broken variants that they catch."""

import pytest

from tests.sim.histories import assert_caught, run_all
from tests.sim.holding.mutants import LATE_ORDERS, MUTANTS
from tests.sim.holding.plan import draw, draw_late_orders
from tests.sim.run import run

HISTORIES = 24
CHUNK = 12
WITHIN = 100
"""Histories in which each variant must be caught."""


@pytest.mark.parametrize("first", range(0, HISTORIES, CHUNK))
def test_no_history_violates_anything(first: int) -> None:
    met, _ = run_all(draw, range(first, first + CHUNK))
    assert met["host slices wanted"]
    assert met["claim of a host dropped"]
    assert met["host fenced and back"] or met["host removed"]


CLAIM_IN_THE_WAY = 770777
"""Two slices were wanted, then none, then one: the claim of the second was still there, and no room for the first."""


def test_a_claim_that_is_wanted_no_more_does_not_keep_another_out() -> None:
    outcome = run(draw(CLAIM_IN_THE_WAY, hosts_go=False))
    assert not outcome.code, outcome.detail


NEVER_HELD = 120007584
"""A host died while a slice was assigned to it, and the keeper claimed it again once the host was back without it."""


def test_a_slice_that_its_host_never_held_comes_back_though_the_keeper_claims() -> None:
    outcome = run(draw(NEVER_HELD))
    assert not outcome.code, outcome.detail


FENCED_WHILE_A_GUEST_CAME = (171005617, 171005702, 171006697)
"""A host was fenced, and was back, in the middle of a move to it. Here it was the simulation that was wrong: the
guest arrived, and what its host had been promised for it was to be kept.
"""


@pytest.mark.parametrize("seed", FENCED_WHILE_A_GUEST_CAME)
def test_no_guest_arrives_where_the_power_was_cut_meanwhile(seed: int) -> None:
    outcome = run(draw(seed))
    assert not outcome.code, outcome.detail


FENCED_BEFORE_THE_ORDER = 31001065
"""A host was fenced between the claim of a slice and the order to hold it, which it found when it was back."""


def test_an_order_from_before_a_fence_takes_nothing() -> None:
    outcome = run(draw(FENCED_BEFORE_THE_ORDER))
    assert not outcome.code, outcome.detail


def test_without_the_generation_in_its_id_it_would() -> None:
    assert run(draw(FENCED_BEFORE_THE_ORDER), broken=LATE_ORDERS.broken).code == "assigned_unclaimed"


def test_late_orders_violate_nothing_and_would_if_they_counted() -> None:
    run_all(draw_late_orders, range(CHUNK))
    assert_caught(LATE_ORDERS, draw_late_orders, WITHIN)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_variant_is_caught(name: str) -> None:
    assert_caught(MUTANTS[name], draw, WITHIN)


def test_the_sql_ledger_violates_nothing() -> None:
    outcome = run(draw(2), sql=True)
    assert not outcome.code, outcome.detail


def test_the_same_seed_takes_the_same_turns() -> None:
    first, second = (run(draw(7), tracing=True).trace for _ in range(2))
    assert first == second
    assert len(first) > 20
