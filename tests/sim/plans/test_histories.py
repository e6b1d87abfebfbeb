"""Histories of sleeps and plans, and broken variants that they catch."""

import pytest

from tests.sim.histories import assert_caught, run_all
from tests.sim.plans.mutants import MUTANTS
from tests.sim.plans.plan import FAULTS, draw
from tests.sim.run import run

HISTORIES = 12
CHUNK = 6
WITHIN = 60
"""Histories in which each variant must be caught."""


@pytest.mark.parametrize("first", range(0, HISTORIES, CHUNK))
def test_no_history_violates_anything(first: int) -> None:
    faults, _ = run_all(draw, range(first, first + CHUNK))
    for met in ("plan applied", "server booted", "host slept", "host woke", "plan consolidate done"):
        assert faults[met], met


SEEDS: tuple[tuple[int, str], ...] = (
    (210000026, "a migration that was tried again was not counted: more moved within an hour than may"),
    (210000094, "a host that had been suspended was enabled by a restoration, and slept"),
    (210000199, "a plan that failed enabled a host that an operator's order was about to put to sleep"),
    (210000234, "a plan was applied to a host that an operator's order had suspended meanwhile, and left it disabled"),
    (210000284, "a host that slept was restored, as in 210000094"),
    (210005153, "a former leader that stood still enabled a host late, which its successor had put to sleep"),
    (120025116, "a former leader that stood still disabled a host for its plan late, which slept by that plan"),
    (120026840, "an order to sleep reached a host that had died once its memory was its own again: nobody woke it"),
    (200003543, "two borrows at a time ended one lend that waited, and one of them failed"),
    (200000102, "a former leader that stood still looked at a sleep that its successor had ended meanwhile: KeyError"),
    (210000019, "the simulation's: a borrower that sleeps gives back what is lost once it is awake"),
    (210000467, "the simulation's: nova-compute of a sleeper tells what its host lends once it is awake"),
    (210002185, "the simulation's: a freeze that was carried out and not answered was never ended"),
    (180007964, "the simulation's: a late copy of an order put a host to sleep that its operator had found awake"),
    (180013951, "the simulation's: a freeze came after its end, and nobody looked at it again"),
    (210000908, "the simulation's: a nova-compute that was to start while its host slept starts after a reset, too"),
)


@pytest.mark.parametrize(("seed", "about"), SEEDS, ids=[str(seed) for seed, _ in SEEDS])
def test_a_history_that_once_went_wrong(seed: int, about: str) -> None:
    outcome = run(draw(seed))
    assert not outcome.code, f"{outcome.detail} (once: {about})"


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_variant_is_caught(name: str) -> None:
    assert_caught(MUTANTS[name], draw, WITHIN)


def test_only_some_faults() -> None:
    history = draw(3, only=("waker_death",))
    assert {step.kind for step in history.faults} == {"waker_death"}
    assert "waker_death" in FAULTS


def test_the_same_seed_takes_the_same_turns() -> None:
    first, second = (run(draw(7), tracing=True).trace for _ in range(2))
    assert first == second
    assert len(first) > 20
