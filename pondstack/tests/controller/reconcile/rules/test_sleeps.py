"""What an audit says of hosts that sleep."""

from dataclasses import replace

import pytest

from pondstack.controller.pool.snapshot import unusable_hosts
from pondstack.controller.reconcile.findings import Severity
from pondstack.controller.reconcile.rules.rules import decide
from pondstack.domain.host_sleep import ENDED, HostSleep, SleepState
from pondstack.tests.controller.builders import Builder

pytestmark = pytest.mark.unit

S = SleepState
SILENT_SECONDS = 3600.0


def observed(state, seconds=1.0, silent=True):
    observation = Builder().observation()
    age = SILENT_SECONDS if silent else 1.0
    sleep = HostSleep("u", "h1", "lowpower-s0", state, "why", state_seconds=seconds)
    host = replace(observation.rack.hosts["h1"], sleep=sleep, age_seconds=age)
    return replace(observation, rack=replace(observation.rack, hosts={**observation.rack.hosts, "h1": host}))


def found(observation):
    return {finding.code: finding for finding in decide(observation)}


@pytest.mark.parametrize("state", [S.SUSPENDING, S.ASLEEP, S.WAKING])
def test_nobody_wonders_that_a_sleeper_is_silent(state):
    assert found(observed(state)) == {}


@pytest.mark.parametrize("state", [S.DISABLING, S.LENDING, S.RECLAIMING, S.ENABLING])
def test_a_host_that_is_to_be_awake_is_to_report(state):
    assert set(found(observed(state))) == {"agent_down"}


def test_asleep_for_ever_is_no_trouble():
    assert found(observed(S.ASLEEP, seconds=1e9)) == {}


@pytest.mark.parametrize("state", [S.LENDING, S.WAKING, S.RECLAIMING])
def test_one_that_comes_no_further_is_told(state):
    finding = found(observed(state, seconds=901.0, silent=False))["sleep_stuck"]
    assert (finding.severity, finding.action) == (Severity.WARNING, None)
    assert "why" in finding.detail


def test_one_that_stopped_serving_is_the_operators():
    assert "look at it" in found(observed(S.LOST))["sleeper_lost"].detail


@pytest.mark.parametrize("state", sorted(set(S) - ENDED))
def test_no_scheduler_gives_it_pool_memory(state):
    """By its state: its agent may have reported a moment ago."""
    view = observed(state, silent=False).rack
    assert str(state) in unusable_hosts(view, 20.0)["h1"]
