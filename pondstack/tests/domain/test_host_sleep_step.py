"""What a host's sleep does next."""

from dataclasses import replace

import pytest

from pondstack.domain.host_sleep import DISABLED_REASON, ENDED, TRANSITIONS, HostSleep, SleepState, Work
from pondstack.domain.host_sleep_step import Act, Limits, PowerWord, Seen, Service, Step, decide
from pondstack.domain.power import MODES

pytestmark = pytest.mark.unit

S = SleepState
LIMITS = Limits(lend_seconds=600, suspend_seconds=120, confirm_seconds=15, wake_seconds=300, retry_seconds=10)
ON, OURS, THEIRS = Service(True), Service(False, DISABLED_REASON), Service(False, "broken fan")
ENTERING, WOKEN, FAILED = (PowerWord(state, mine=True) for state in ("entering", "woken", "failed"))
OTHER = PowerWord("woken", mine=False)


def sleep(state, driver="lowpower-s0", **more):
    return HostSleep("u", "h1", driver, state, **more)


def step(item, seen):
    found = decide(item, seen, LIMITS)
    assert found.state is item.state or found.state in TRANSITIONS[item.state]
    return found


@pytest.mark.parametrize(
    ("seen", "act", "state", "ending"),
    [
        (Seen(service=ON), Act.DISABLE, S.DISABLING, None),
        (Seen(service=OURS), Act.WAIT, S.LENDING, None),
        (Seen(service=THEIRS), Act.WAIT, S.LENDING, None),
        (Seen(service=None), Act.WAIT, S.ENABLING, S.FAILED),
        (Seen(service=OURS, servers=("vm-1",)), Act.WAIT, S.ENABLING, S.FAILED),
        (Seen(service=ON, servers=("vm-1",)), Act.WAIT, S.ENABLING, S.FAILED),
    ],
)
def test_nova_is_told_before_anything_is_lent(seen, act, state, ending):
    found = step(sleep(S.DISABLING), seen)
    assert (found.act, found.state, found.ending) == (act, state, ending)


@pytest.mark.parametrize(("service", "act"), [(THEIRS, Act.DISABLE), (OURS, Act.WAIT), (Service(False, "x"), Act.WAIT)])
def test_the_reason_of_a_plan_gives_way_and_no_other(service, act):
    item = sleep(S.DISABLING, work=Work(disabled_by=THEIRS.disabled_reason))
    assert step(item, Seen(service=service)).act is act


LENT = {"lent_mib": 128, "incarnation": "i1"}


@pytest.mark.parametrize(
    ("seen", "act", "state", "ending"),
    [
        (Seen(), Act.LEND, S.LENDING, None),
        (Seen(service=OURS), Act.LEND, S.LENDING, None),
        (Seen(service=ON, lend_ended=(128, ""), **LENT), Act.WAIT, S.RECLAIMING, S.FAILED),
        (Seen(lend=""), Act.WAIT, S.LENDING, None),
        (Seen(601, lend="instances leave 0 MiB"), Act.WAIT, S.RECLAIMING, S.FAILED),
        (Seen(lend_ended=(0, "no room")), Act.WAIT, S.RECLAIMING, S.FAILED),
        (Seen(lend_ended=(128, ""), waiting_keys=2, **LENT), Act.WAIT, S.LENDING, None),
        (Seen(601, lend_ended=(128, ""), waiting_keys=2, **LENT), Act.WAIT, S.SUSPENDING, None),
        (Seen(lend_ended=(128, ""), **LENT), Act.WAIT, S.SUSPENDING, None),
        # One that was scheduled before Nova's scheduler heard of it.
        (Seen(lend_ended=(128, ""), servers=("vm-1",), **LENT), Act.WAIT, S.RECLAIMING, S.FAILED),
    ],
)
def test_keys_are_in_escrow_before_a_host_is_suspended(seen, act, state, ending):
    found = step(sleep(S.LENDING), seen)
    assert (found.act, found.state, found.ending) == (act, state, ending)


def test_what_a_host_lent_when_it_fell_asleep_is_written_down():
    found = step(sleep(S.LENDING), Seen(lend_ended=(128, ""), **LENT))
    assert (found.lent_mib, found.incarnation) == (128, "i1")


@pytest.mark.parametrize("item", [sleep(S.LENDING, "s3"), sleep(S.LENDING, "off"), sleep(S.LENDING, work=Work(mib=0))])
def test_what_nobody_would_reach_is_not_lent(item):
    found = step(item, Seen())
    assert (found.act, found.state, found.lent_mib) == (Act.WAIT, S.SUSPENDING, 0)


@pytest.mark.parametrize(
    ("driver", "seen", "act", "state", "ending"),
    [
        ("lowpower-s0", Seen(power=OTHER), Act.SUSPEND, S.SUSPENDING, None),
        ("lowpower-s0", Seen(power=ENTERING, waker=True), Act.WAIT, S.SUSPENDING, None),
        ("lowpower-s0", Seen(power=None, waker=True), Act.WAIT, S.ASLEEP, None),
        ("lowpower-s0", Seen(60, power=None, report_age=60), Act.WAIT, S.SUSPENDING, None),
        ("lowpower-s0", Seen(121, power=None, report_age=121), Act.WAIT, S.WAKING, S.FAILED),
        ("lowpower-s0", Seen(power=FAILED), Act.WAIT, S.WAKING, S.FAILED),
        ("lowpower-s0", Seen(power=WOKEN), Act.WAIT, S.WAKING, None),
        ("s3", Seen(14, power=None, report_age=14), Act.WAIT, S.SUSPENDING, None),
        ("s3", Seen(16, power=None, report_age=16), Act.WAIT, S.ASLEEP, None),
        # It reported a moment ago: only this call was lost.
        ("s3", Seen(60, power=None, report_age=1), Act.WAIT, S.SUSPENDING, None),
        ("s3", Seen(121, power=ENTERING, report_age=1), Act.WAIT, S.WAKING, S.FAILED),
    ],
)
def test_a_host_is_asleep_by_evidence(driver, seen, act, state, ending):
    found = step(sleep(S.SUSPENDING, driver), seen)
    assert (found.act, found.state, found.ending) == (act, state, ending)


@pytest.mark.parametrize(
    ("seen", "act", "state"),
    [
        (Seen(3600, report_age=3600), Act.WAIT, S.ASLEEP),
        # What it sent just before it fell asleep.
        (Seen(3600, report_age=3590), Act.WAIT, S.ASLEEP),
        (Seen(3600, report_age=2), Act.WAIT, S.WAKING),
        (Seen(3600, report_age=3600, silent_for="h2"), Act.FENCE, S.LOST),
        # It is awake: what h2 has lost is a matter of today's rules.
        (Seen(3600, report_age=2, silent_for="h2"), Act.WAIT, S.WAKING),
    ],
)
def test_a_sleeper_is_left_alone(seen, act, state):
    found = step(sleep(S.ASLEEP), seen)
    assert (found.act, found.state) == (act, state)


@pytest.mark.parametrize(
    ("calls", "was_reset", "seen", "act", "state"),
    [
        (0, False, Seen(0), Act.WAKE, S.WAKING),
        (1, False, Seen(5), Act.WAIT, S.WAKING),
        (1, False, Seen(10), Act.WAKE, S.WAKING),
        (0, False, Seen(0, power=ENTERING), Act.WAKE, S.WAKING),
        (1, False, Seen(2, power=WOKEN), Act.END, S.RECLAIMING),
        (1, False, Seen(2, power=PowerWord()), Act.END, S.RECLAIMING),
        (30, False, Seen(301), Act.WAKE, S.WAKING),
        (30, False, Seen(301, can_reset=True), Act.RESET, S.WAKING),
        (30, True, Seen(301, can_reset=True), Act.WAKE, S.WAKING),
    ],
)
def test_a_host_is_called_until_its_agent_answers_and_reset_once(calls, was_reset, seen, act, state):
    found = step(sleep(S.WAKING, work=Work(calls=calls, was_reset=was_reset)), seen)
    assert (found.act, found.state) == (act, state)


def test_one_that_does_not_wake_says_so():
    assert "does not wake" in step(sleep(S.WAKING, work=Work(calls=30)), Seen(301)).reason


@pytest.mark.parametrize(
    ("seen", "act", "state"),
    [
        (Seen(lent_mib=128), Act.RECLAIM, S.RECLAIMING),
        (Seen(lend="under way"), Act.RECLAIM, S.RECLAIMING),
        (Seen(reserved_mib=128), Act.WAIT, S.RECLAIMING),
        (Seen(), Act.WAIT, S.ENABLING),
    ],
)
def test_nova_may_place_servers_there_once_its_memory_is_back(seen, act, state):
    found = step(sleep(S.RECLAIMING), seen)
    assert (found.act, found.state) == (act, state)


def test_one_that_is_to_sleep_deeper_is_told_anew_once_its_memory_is_back():
    item = sleep(S.RECLAIMING, lent_mib=128, work=Work(deeper="s3", incarnation="i1"))
    assert step(item, Seen(lent_mib=128)).state is S.RECLAIMING
    found = step(item, Seen())
    assert (found.act, found.state, found.driver) == (Act.WAIT, S.SUSPENDING, "s3")
    assert (found.lent_mib, found.incarnation) == (0, "")
    # Asleep by s3, and woken: now it is back for good.
    assert step(sleep(S.RECLAIMING, "s3", work=Work(deeper="s3")), Seen()).state is S.ENABLING


@pytest.mark.parametrize(
    ("work", "service", "act", "state"),
    [
        (Work(), OURS, Act.ENABLE, S.ENABLING),
        (Work(), ON, Act.WAIT, S.AWAKE),
        (Work(), THEIRS, Act.WAIT, S.AWAKE),
        (Work(), None, Act.WAIT, S.AWAKE),
        (Work(kept_disabled=True), OURS, Act.WAIT, S.AWAKE),
        (Work(ending=S.FAILED), ON, Act.WAIT, S.FAILED),
        (Work(ending=S.ABORTED), ON, Act.WAIT, S.ABORTED),
    ],
)
def test_only_our_own_order_is_taken_back(work, service, act, state):
    found = step(sleep(S.ENABLING, work=work), Seen(service=service))
    assert (found.act, found.state) == (act, state)


def test_why_it_failed_is_said_to_the_end():
    item = sleep(S.RECLAIMING, reason="it cannot sleep", work=Work(ending=S.FAILED))
    for seen, state in ((Seen(lent_mib=1), S.RECLAIMING), (Seen(), S.ENABLING)):
        assert step(item, seen).reason == "it cannot sleep"
        item = replace(item, state=state)
    assert step(item, Seen(service=ON)) == Step(Act.WAIT, S.FAILED, "it cannot sleep")


@pytest.mark.parametrize("driver", sorted(MODES))
@pytest.mark.parametrize("state", sorted(set(S) - ENDED))
def test_every_open_state_has_a_step(driver, state):
    assert step(sleep(state, driver), Seen(service=OURS)).state in {state, *TRANSITIONS[state]}
