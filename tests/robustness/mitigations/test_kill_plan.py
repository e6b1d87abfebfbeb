"""The plan of kills in mitigations: the seed gives it, each step comes often enough, victims take part in it."""

from collections import Counter

import pytest

from pondstack.domain.mitigation import ENDED, MitigationMethod, MitigationState
from tests.robustness.mitigations.plan import (
    BY_MIGRATION,
    LEAST_OF_A_STEP,
    MITIGATIONS_JUDGED,
    STEPS,
    Place,
    Victim,
    make_plan,
)

SEEDS = range(1, 21)


def test_the_seed_gives_the_plan() -> None:
    assert make_plan(1, 50) == make_plan(1, 50)
    assert make_plan(1, 50) != make_plan(2, 50)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_step_is_killed_three_times_and_each_victim_several_times(seed: int) -> None:
    plan = make_plan(seed, MITIGATIONS_JUDGED)
    assert len(plan) == MITIGATIONS_JUDGED
    steps = Counter(kill.step for kill in plan)
    assert min(steps[step] for step in STEPS) >= LEAST_OF_A_STEP
    victims = Counter(kill.victim for kill in plan)
    assert min(victims[victim] for victim in Victim) >= LEAST_OF_A_STEP


@pytest.mark.parametrize("seed", SEEDS)
def test_victims_and_real_guests_are_where_the_step_is(seed: int) -> None:
    for kill in make_plan(seed, MITIGATIONS_JUDGED):
        assert kill.step.method is MitigationMethod.MIGRATE or kill.victim not in BY_MIGRATION
        assert kill.place is Place.FAKE or kill.step.guest


def test_each_step_that_real_guests_come_by_is_met_on_one() -> None:
    plan = make_plan(1, MITIGATIONS_JUDGED)
    assert {kill.step for kill in plan if kill.place is Place.GUEST} == {step for step in STEPS if step.guest}


def test_all_states_of_a_mitigation_are_steps() -> None:
    assert {step.state for step in STEPS} == set(MitigationState) - ENDED
    assert len({step.name for step in STEPS}) == len(STEPS)
