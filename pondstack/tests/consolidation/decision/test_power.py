"""Watts by Table 3 of Zombieland."""

import pytest

from pondstack.consolidation.decision.power import saved_watts


@pytest.mark.parametrize(("profile", "watts"), [("hp", 2 * 41.17), ("dell", 2 * 33.62)])
def test_a_host_that_falls_asleep_saves_what_it_took_idle(profile, watts):
    """HP: 53.84 % less 12.67 % of 100 W; Dell: 44.77 % less 11.15 %."""
    assert saved_watts(profile, 100.0, fallen_asleep=3, woken=1) == pytest.approx(watts)
