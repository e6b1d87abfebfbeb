"""Agents and nova-computes die at each step of a plan: it ends, and nothing of it is left behind.

The end of each history tells what is left behind: no plan that goes on, no host that is disabled and nothing says why,
no sleep, no claim, no memory that is lent and nobody has, no order that is not answered (tests.sim.consistent).
"""

from functools import cache

import pytest

from tests.sim.plans.deaths import Deaths, Point, kill_agent, kill_compute, run_with

WAYS = {
    "agent, before": (kill_agent, True),
    "agent, not answered": (kill_agent, False),
    "nova-compute": (kill_compute, True),
}


@cache
def points() -> tuple[Point, ...]:
    """Return the steps of the plan, of a run in which nobody dies."""
    deaths = Deaths()
    outcome = run_with(deaths)
    assert not outcome.code, outcome.detail
    assert outcome.faults["plan consolidate done"] == outcome.faults["host slept"] == 1
    return tuple(deaths.points)


@pytest.mark.parametrize("way", WAYS)
def test_whoever_dies_at_whatever_step_a_plan_ends(way: str) -> None:
    kill, before = WAYS[way]
    calls = {point.call for point in points()}
    assert {"disable", "enable", "live_migrate", "lend", "suspend", "reclaim"} <= calls, "there is something to die at"
    for point in points():
        deaths = Deaths(point, before=before, kill=kill)
        outcome = run_with(deaths)
        assert deaths.died, point
        assert not outcome.code, f"{way} at {point}: {outcome.detail}"
        ends = [name for name in outcome.faults if name.startswith("plan consolidate ")]
        assert ends, point
        assert set(ends) <= {"plan consolidate done", "plan consolidate failed"}, (way, point, ends)
