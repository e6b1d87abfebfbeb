"""Remaining lifetimes against textbook values, brute force, and what censoring and late entry would spoil."""

import random
import statistics
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pondstack.domain.history import Lifetime
from pondstack.prediction.lifetime import LEAST_AT_RISK, Life, Survival, life_of, remaining_lifetime

NOW = datetime(2026, 11, 25, tzinfo=UTC)
SINCE = NOW - timedelta(days=30)
HOUR = 3600.0


def lifetime(number, hours, *, ended=True, begun=SINCE, project="blue", flavor="m1"):
    end = begun + timedelta(hours=hours) if ended else None
    return Lifetime(str(number), project, flavor, 4096, 2, "", "", "", begun, end, None, 0.0)


def test_a_textbook_case():
    """Kaplan and Meier by hand: ends at 1, 3, 3, 5, censored at 2 and 4; S = 5/6, 5/12, 0 after 1, 3 and 5."""
    survival = Survival([Life(0, age, ended) for age, ended in ((1, 1), (2, 0), (3, 1), (3, 1), (4, 0), (5, 1))])
    assert survival.remaining(0, 15) == 1
    assert survival.remaining(0, 50) == 3
    assert survival.remaining(0, 90) == 5
    assert survival.remaining(3, 50) == 2
    assert [survival.at_risk(age) for age in (0, 1, 2, 3, 4, 5)] == [6, 5, 4, 2, 1, 0]


def test_without_censoring_it_is_the_quantile_of_those_who_lived_as_long():
    chance = random.Random(1)
    ages = [chance.lognormvariate(3, 1.5) for _ in range(999)]
    survival = Survival([Life(0, age, True) for age in ages])
    for age in (0.0, 5.0, 20.0, 100.0):
        rest = [item - age for item in ages if item > age]
        assert survival.remaining(age, 50) == pytest.approx(statistics.median_low(rest), rel=0.05)


def test_older_instances_live_on_for_longer_where_lives_are_heavy_tailed():
    chance = random.Random(2)
    survival = Survival([Life(0, chance.paretovariate(1.2) - 1, True) for _ in range(5000)])
    found = [survival.remaining(age, 50) for age in (0, 1, 3, 9)]
    assert found == sorted(found)
    assert found[-1] > 4 * found[0]


def test_those_who_still_live_are_not_taken_for_dead():
    chance = random.Random(3)
    ages = [chance.expovariate(1.0) for _ in range(4000)]
    window = [(age, chance.uniform(0, 2)) for age in ages]
    survival = Survival([Life(0, min(age, seen), age <= seen) for age, seen in window])
    assert survival.remaining(0, 50) == pytest.approx(0.693, abs=0.05)
    naive = statistics.median(min(age, seen) for age, seen in window)
    assert naive < 0.55, "the figure that would come of them"


def test_those_who_were_there_before_the_window_do_not_make_lives_longer():
    chance = random.Random(4)
    lives = []
    for _ in range(20000):
        born, age = chance.uniform(-20, 5), chance.expovariate(1.0)
        if born + age > 0:
            lives.append(Life(max(0.0, -born), min(age, 5 - born), born + age <= 5))
    assert Survival(lives).remaining(0, 50) == pytest.approx(0.693, abs=0.04)
    assert Survival([replace(life, entered=0.0) for life in lives]).remaining(0, 50) > 0.8


def test_few_that_were_seen_young_do_not_end_all_older_ones():
    survival = Survival([Life(0, 1, True), *(Life(5, 5 + age, True) for age in range(1, 11))])
    assert survival.remaining(5, 50) == 5


def test_what_lasts_longer_than_what_was_seen_is_not_known():
    assert Survival([Life(0, 10, False)] * 9 + [Life(0, 5, True)]).remaining(0, 50) is None
    assert Survival([]).remaining(0, 50) is None
    assert Survival([Life(0, 0, True), Life(3, 3, True)]).at_risk(0) == 0


def test_a_life_in_the_window():
    old = lifetime(1, 48, begun=SINCE - timedelta(hours=24))
    assert life_of(old, SINCE, NOW) == Life(24 * HOUR, 48 * HOUR, True)
    assert life_of(old, SINCE, SINCE + timedelta(hours=1)) == Life(24 * HOUR, 25 * HOUR, False), "its end is ahead"
    assert life_of(lifetime(1, 0, ended=False), SINCE, NOW).left == 30 * 24 * HOUR


def test_the_narrowest_group_that_saw_enough_is_asked():
    mine = [lifetime(f"a{n}", 10) for n in range(LEAST_AT_RISK)]
    sisters = [lifetime(f"b{n}", 20, flavor="m2") for n in range(LEAST_AT_RISK)]
    others = [lifetime(f"c{n}", 40, project="green") for n in range(2 * LEAST_AT_RISK)]
    everybody = [*mine, *sisters, *others]
    found = {}
    for hours in (1, 15, 25, 100):
        one = lifetime("me", 0, ended=False, begun=NOW - timedelta(hours=hours))
        found[hours] = remaining_lifetime(one, [*everybody, one], SINCE, NOW)
    assert (found[1].group, found[1].median_seconds, found[1].at_risk) == ("flavor", 9 * HOUR, LEAST_AT_RISK)
    assert (found[15].group, found[15].p90_seconds) == ("project", 5 * HOUR)
    assert (found[25].group, found[25].median_seconds) == ("cloud", 15 * HOUR)
    assert found[100] is None, "nobody has lived as long"
