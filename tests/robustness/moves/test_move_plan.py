"""The plan of deaths in live migrations: the seed gives it, everybody dies often enough, where that is possible."""

from collections import Counter

import pytest

from tests.robustness.moves.plan import LEAST_OF_A_VICTIM, MOVES_JUDGED, Act, Step, Victim, make_plan
from tests.robustness.moves.rack import SILENCE_SECONDS

SEEDS = range(1, 21)


def test_the_seed_gives_the_plan() -> None:
    assert make_plan(1, 20) == make_plan(1, 20)
    assert make_plan(1, 20) != make_plan(2, 20)


@pytest.mark.parametrize("seed", SEEDS)
def test_everybody_dies_often_enough(seed: int) -> None:
    victims = Counter(kill.victim for kill in make_plan(seed, MOVES_JUDGED))
    assert min(victims[victim] for victim in Victim) >= LEAST_OF_A_VICTIM


@pytest.mark.parametrize("seed", SEEDS)
def test_everybody_is_killed_and_frozen_at_each_step_in_time(seed: int) -> None:
    plan = make_plan(seed, 8 * len(Victim))
    for victim in Victim:
        mine = [kill for kill in plan if kill.victim is victim]
        if victim is Victim.OPERATOR:
            assert {kill.act for kill in mine} == {Act.ABORT}
            assert Step.FETCHING not in {kill.step for kill in mine}, "Nova cannot abort it any more"
        else:
            assert {kill.act for kill in mine} == {Act.KILL, Act.FREEZE}
            assert {kill.step for kill in mine} == set(Step)


def test_freezes_are_shorter_and_longer_than_the_silence_that_is_borne() -> None:
    away = [kill.away_seconds for kill in make_plan(1, 100) if kill.act is Act.FREEZE]
    assert min(away) < SILENCE_SECONDS < max(away)
