"""Which compute services are not what the sleeps of their hosts want."""

from uuid import uuid4

import pytest

from pondstack.domain.host_sleep import DISABLED_REASON, ENDED, HostSleep, SleepState
from pondstack.domain.host_sleep_step import Service
from pondstack.domain.sleeper_services import STAY_DISABLED, wrong

pytestmark = pytest.mark.unit

ON, OURS, THEIRS = Service(True), Service(False, DISABLED_REASON), Service(False, "broken fan")
OPEN = sorted(set(SleepState) - ENDED)


def sleep(state, host="a"):
    return HostSleep(str(uuid4()), host, "lowpower-s0", state)


@pytest.mark.parametrize("state", OPEN)
def test_a_sleeper_that_was_enabled_is_disabled(state):
    found = wrong({"a": ON, "b": ON}, [sleep(state)])
    assert found == (("a",) if state in STAY_DISABLED else (), ())


@pytest.mark.parametrize("service", [OURS, THEIRS])
@pytest.mark.parametrize("state", OPEN)
def test_one_that_is_disabled_stays_so(state, service):
    assert wrong({"a": service}, [sleep(state)]) == ((), ())


def test_what_was_disabled_for_a_sleep_that_is_no_more_is_enabled():
    assert wrong({"a": OURS, "b": THEIRS, "c": ON}, [sleep(SleepState.ASLEEP, "d")]) == ((), ("a",))


def test_a_sleeper_without_a_service_is_nobody():
    assert wrong({}, [sleep(SleepState.ASLEEP)]) == ((), ())
