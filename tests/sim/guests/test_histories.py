"""Histories of guests on hosts that lend, and broken variants that they catch."""

import pytest

from tests.sim.guests.mutants import MUTANTS
from tests.sim.guests.plan import FAULTS, draw
from tests.sim.histories import assert_caught, run_all
from tests.sim.run import run

HISTORIES = 24
CHUNK = 12
WITHIN = 200
"""Histories in which each variant must be caught."""


@pytest.mark.parametrize("first", range(0, HISTORIES, CHUNK))
def test_no_history_violates_anything(first: int) -> None:
    faults, acknowledged = run_all(draw, range(first, first + CHUNK))
    assert acknowledged > CHUNK / 2
    for met in ("guest placed", "guest refused", "claim deleted by an audit", "nova-compute killed"):
        assert faults[met], met


FREED_LATE = 770143
"""A buffer's key outlived the reclaim that was to take the buffer back, and ended later."""


def test_what_comes_free_after_its_reclaim_is_taken_back_by_another() -> None:
    outcome = run(draw(FREED_LATE))
    assert not outcome.code, outcome.detail


ASLEEP_WITH_A_KEY = 40001074
"""A lender's device did not end a key; the host became a zombie before it was told again, and stayed one.

Here it was the simulation that was wrong: such a buffer waits until its lender is awake, like one that is sanitised.
"""


def test_a_key_that_lives_waits_with_its_zombie() -> None:
    outcome = run(draw(ASLEEP_WITH_A_KEY))
    assert not outcome.code, outcome.detail


ROOM_THAT_GUESTS_TOOK = 173000405
"""Somebody was promised what all hosts have together, and guests had been placed there. Only alone is that a fault."""


def test_room_that_guests_took_is_not_there_to_lend() -> None:
    outcome = run(draw(ROOM_THAT_GUESTS_TOOK))
    assert not outcome.code, outcome.detail


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_variant_is_caught(name: str) -> None:
    assert_caught(MUTANTS[name], draw, WITHIN)


def test_only_some_faults() -> None:
    history = draw(3, only=("compute_pause",))
    assert {step.kind for step in history.faults} == {"compute_pause"}
    assert "compute_pause" in FAULTS


def test_the_same_seed_takes_the_same_turns() -> None:
    first, second = (run(draw(7), tracing=True).trace for _ in range(2))
    assert first == second
    assert len(first) > 20
