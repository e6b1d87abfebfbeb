"""openstack memory host suspend and wake."""

import pytest

from pondstack.domain.host_sleep import SleepState
from pondstack.osc.v1 import host_sleep, progress
from pondstack.osc.v1.columns import Power

pytestmark = pytest.mark.unit

S = SleepState


@pytest.fixture
def steps(api, monkeypatch):
    """Have each look find the host in the next of some states."""
    left = []

    def look(followed, original=host_sleep.SleepProgress._look):
        if left:
            state, reason = left.pop(0)
            api.controller.go_on("host-1", state, reason=reason, lent_mib=128)
        original(followed)

    monkeypatch.setattr(progress, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(host_sleep.SleepProgress, "_look", look)
    return left


def test_suspend_answers_at_once(json_of):
    told = json_of("memory host suspend host-1 --driver frozen --mib 128")
    assert (told["state"], told["driver"], told["emulated"]) == ("disabling", "frozen", True)


def test_suspend_follows_until_it_sleeps(openstack, steps):
    steps += [(S.LENDING, "instances leave 0 MiB"), (S.SUSPENDING, ""), (S.ASLEEP, "")]
    status, _, err = openstack("memory host suspend host-1 --driver frozen --wait")
    assert status == 0, err
    assert [line for line in err.splitlines() if line.startswith("host-1:")] == [
        "host-1: disabling by frozen (emulated: nothing is saved), lends 0 MiB",
        "host-1: lending by frozen (emulated: nothing is saved), lends 128 MiB: instances leave 0 MiB",
        "host-1: suspending by frozen (emulated: nothing is saved), lends 128 MiB",
        "host-1: asleep by frozen (emulated: nothing is saved), lends 128 MiB",
    ]
    assert "asleep" in openstack("memory host list")[1]
    assert "asleep by frozen" in openstack("memory host show host-1")[1]


def test_what_a_host_takes_is_an_estimate(openstack, json_of):
    def shown():
        return Power(json_of("memory host show host-1")["power"]).human_readable()

    assert shown() == "memory reachable, by estimate (profile hp) 135 W idle, unknown asleep by lowpower-s0"
    openstack("memory host suspend host-1 --driver sz")
    assert shown() == "memory reachable, by estimate (profile hp) 135 W idle, 32 W asleep by sz"
    assert "32 W asleep by sz" in openstack("memory host show host-1")[1]


def test_memory_of_a_host_in_s3_is_not_reachable(openstack, api):
    openstack("memory host suspend host-1 --driver s3")
    for state in (S.LENDING, S.SUSPENDING, S.ASLEEP):
        api.controller.go_on("host-1", state)
    shown = openstack("memory host show host-1")[1]
    assert "memory not reachable" in shown
    assert "28 W asleep by s3" in shown


def test_one_that_does_not_sleep_is_a_failure_with_its_reason(openstack, steps):
    steps += [(S.ENABLING, "servers are on host host-1"), (S.FAILED, "servers are on host host-1")]
    status, out, err = openstack("memory host suspend host-1 --wait")
    assert (status, out) == (1, "")
    assert "host-1 ended as failed by lowpower-s0, lends 128 MiB: servers are on host host-1" in err


def test_one_that_is_not_asleep_in_time(openstack):
    status, _, err = openstack("memory host suspend host-1 --wait --timeout 0.05")
    assert status == 1
    assert "and goes on" in err


@pytest.mark.parametrize("way", [(S.AWAKE,), (S.ABORTED,)])
def test_wake_follows_until_it_is_awake(openstack, steps, way):
    assert openstack("memory host suspend host-1")[0] == 0
    steps += [(state, "") for state in way]
    status, _, err = openstack("memory host wake host-1 --wait")
    assert status == 0, err


def test_what_is_awake_is_not_woken(openstack):
    status, _, err = openstack("memory host wake host-1")
    assert status == 1
    assert "is awake" in err
