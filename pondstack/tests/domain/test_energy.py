"""Estimated watts against Table 3 of Zombieland, and against a profile that somebody has measured."""

import pytest

from pondstack.domain.energy import CONFIGURED, PROFILES, estimate, profile_of, saved_watts
from pondstack.domain.errors import BadRequest

pytestmark = pytest.mark.unit

MEASURED = {"idle": "50", "lowpower-s0": "35.5"}


@pytest.mark.parametrize(("profile", "watts"), [("hp", 2 * 41.17), ("dell", 2 * 33.62)])
def test_a_host_that_falls_asleep_saves_what_it_took_idle(profile, watts):
    assert saved_watts(estimate(PROFILES[profile], 100.0, "sz"), fallen_asleep=3, woken=1) == pytest.approx(watts)


@pytest.mark.parametrize(
    ("profile", "driver", "watts"), [("hp", "sz", 25.34), ("hp", "s3", 22.06), ("dell", "off", 16.62)]
)
def test_what_a_host_takes_by_each_driver(profile, driver, watts):
    found = estimate(PROFILES[profile], 200.0, driver)
    assert found.profile == profile
    assert found.idle_watts == pytest.approx(2 * PROFILES[profile].idle_percent)
    assert found.asleep_watts == pytest.approx(watts)


def test_nobody_claims_what_nobody_has_measured():
    assert estimate(PROFILES["hp"], 200.0, "lowpower-s0").asleep_watts is None
    assert saved_watts(estimate(PROFILES["hp"], 200.0, "lowpower-s0"), fallen_asleep=3, woken=0) is None


def test_an_emulated_sleep_saves_nothing():
    assert saved_watts(estimate(PROFILES["hp"], 200.0, "frozen"), fallen_asleep=3, woken=0) == 0.0


def test_a_profile_of_ones_own():
    found = estimate(profile_of(CONFIGURED, MEASURED), 200.0, "lowpower-s0")
    assert (found.profile, found.idle_watts, found.asleep_watts) == (CONFIGURED, 100.0, 71.0)
    assert estimate(profile_of(CONFIGURED, MEASURED), 200.0, "s3").asleep_watts is None


@pytest.mark.parametrize(
    "percent", [{}, {"s3": "9"}, {"idle": "much"}, {"idle": "101"}, {"idle": "nan"}, {"idle": "50", "telepathy": "1"}]
)
def test_a_profile_that_is_none(percent):
    with pytest.raises(BadRequest, match="power_percent"):
        profile_of(CONFIGURED, percent)
    with pytest.raises(BadRequest, match="hp, dell, configured"):
        profile_of("abacus", percent)
