"""Who sleeps deeper: whose memory nobody has, while the rack has enough without it."""

from dataclasses import replace

import pytest

from pondstack.domain.deeper_sleep import candidates, choose
from pondstack.domain.host_sleep import HostSleep, SleepState, Work
from pondstack.domain.lending import Buffer
from pondstack.domain.states import SliceState

pytestmark = pytest.mark.unit

S = SleepState
HOUR = 3600.0
WAKEABLE = {"h1", "h2"}


def asleep(host="h1", seconds=HOUR, state=S.ASLEEP, driver="sz", **work):
    return HostSleep("u", host, driver, state, state_seconds=seconds, work=Work(**work))


def of(lender, buffers, **more):
    return [replace(Buffer(lender, "i1", number), **more) for number in range(buffers)]


def test_the_longest_asleep_comes_first():
    found = candidates([asleep("h1"), asleep("h2", 2 * HOUR)], "s3", HOUR, WAKEABLE)
    assert [item.host for item in found] == ["h2", "h1"]


@pytest.mark.parametrize(
    "item",
    [
        asleep(seconds=HOUR - 1),
        asleep(host="h3"),  # nothing could wake it
        asleep(state=S.LOST),
        asleep(driver="s3", deeper="s3"),
    ],
)
def test_who_does_not_change(item):
    assert candidates([item], "s3", HOUR, WAKEABLE) == []


def test_nobody_changes_where_that_is_off():
    assert candidates([asleep()], "", HOUR, WAKEABLE) == []


@pytest.mark.parametrize("state", [S.WAKING, S.RECLAIMING, S.SUSPENDING])
def test_one_at_a_time(state):
    """What two of them see free would be gone with both."""
    other = asleep("h2", state=state, deeper="s3")
    assert candidates([asleep(), other], "s3", HOUR, WAKEABLE) == []
    assert candidates([asleep(), asleep("h2", state=S.ASLEEP, driver="s3", deeper="s3")], "s3", HOUR, WAKEABLE)


def test_more_than_it_lends_stays_free():
    assert choose([asleep()], [*of("h1", 4), *of("h2", 5)]) == asleep()
    assert choose([asleep()], [*of("h1", 4), *of("h2", 4)]) is None
    assert choose([asleep()], of("h1", 4)) is None


@pytest.mark.parametrize(
    "more", [{"state": SliceState.ONLINE, "host": "h3"}, {"promised_to": "h3"}, {"admitted": False}, {"leaving": True}]
)
def test_a_buffer_that_not_everybody_could_have_is_not_free(more):
    assert choose([asleep()], [*of("h1", 3), *of("h1", 1, **more), *of("h2", 9)]) is None
    assert choose([asleep()], [*of("h1", 4), *of("h2", 4), *of("h3", 9, **more)]) is None


def test_the_next_one_where_the_first_is_in_use():
    buffers = [*of("h1", 1, host="h3", state=SliceState.ONLINE), *of("h2", 1), *of("h4", 5)]
    assert choose([asleep("h1"), asleep("h2")], buffers) == asleep("h2")
