"""Worst first, each VM once, within rates and outside quiet hours."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.domain.qos import QosAction, QosMode
from pondstack.domain.quiet_hours import QuietHours
from pondstack.qos.choice import RETRY_SECONDS, choose
from pondstack.qos.judge import judge
from pondstack.qos.pace import Pace, Past, Rates
from pondstack.qos.sensitivity import Sensitivity

from .builders import LIMITS, MANY, guest, says

NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)


def decide(guests, said=None, *, past=(), rates=MANY, quiet=(), mode=QosMode.ON, now=NOON):
    said = said or says({item.consumer_uuid: 20.0 for item in guests})
    judgements = [judge(item, said, LIMITS) for item in guests]
    pace = Pace(past, rates, [QuietHours.parse(text, "[qos] quiet_hours") for text in quiet], now)
    return {item.judgement.guest.consumer_uuid: item for item in choose(judgements, past, pace, LIMITS, mode)}


def actions(*args, **kwargs):
    return {uuid: str(item.action) for uuid, item in decide(*args, **kwargs).items()}


def test_the_worst_comes_first_and_those_that_nobody_knows_last():
    guests = [guest("a"), guest("b"), guest("nobody", touched=2048), guest("c", touched=2048)]
    found = decide(guests, says({"a": 8.0, "b": 30.0, "c": 8.0}))
    assert list(found) == ["b", "c", "a", "nobody"]


def test_what_fits_or_is_not_observed_is_no_decision():
    assert actions([guest("a", touched=0), guest("b", touched=None)]) == {}


def test_a_dry_run_begins_nothing():
    assert actions([guest("a")], mode=QosMode.DRY_RUN) == {"a": "would_mitigate"}


def test_what_is_touched_and_insensitive_is_left_and_kept():
    found = decide([guest("a")], says({"a": 1.0}))
    assert found["a"].action is QosAction.LEAVE
    assert "1.00 % slowdown" in found["a"].reason


@pytest.mark.parametrize(
    ("past", "action"),
    [
        (Past("a", "host-1", False, 1e6), "once"),
        (Past("a", "host-1", False, RETRY_SECONDS - 1, failed=True), "wait"),
        (Past("a", "host-1", False, RETRY_SECONDS + 1, failed=True), "mitigate"),
        (Past("b", "host-1", False, 1e6), "mitigate"),
    ],
)
def test_at_most_once(past, action):
    assert actions([guest("a")], past=[past]) == {"a": action}


def test_one_under_way_is_not_decided_again():
    assert actions([guest("a")], past=[Past("a", "host-1", True, 5.0)]) == {}


@pytest.mark.parametrize(
    ("rates", "begun"),
    [
        (replace(MANY, host_per_hour=1), ["a", "c"]),
        (replace(MANY, rack_per_hour=2), ["a", "b"]),
        (replace(MANY, host_at_a_time=1), ["a", "c"]),
        (replace(MANY, rack_at_a_time=1), ["a"]),
        (replace(MANY, host_per_hour=0), []),
    ],
)
def test_rates_of_host_and_rack(rates, begun):
    guests = [guest("a"), guest("b"), guest("c", host="host-2")]
    found = actions(guests, says({"a": 30.0, "b": 20.0, "c": 10.0}), rates=rates)
    assert [uuid for uuid, action in found.items() if action == "mitigate"] == begun
    assert set(found.values()) <= {"mitigate", "wait"}


def test_what_began_before_counts_for_an_hour_and_what_is_open_as_long_as_it_is():
    rates = Rates(1, 10, 1, 10)
    assert actions([guest("a")], past=[Past("b", "host-1", False, 3599.0)], rates=rates) == {"a": "wait"}
    assert actions([guest("a")], past=[Past("b", "host-1", False, 3600.0)], rates=rates) == {"a": "mitigate"}
    assert actions([guest("a")], past=[Past("b", "host-1", True, 9999.0)], rates=rates) == {"a": "wait"}
    assert actions([guest("a")], past=[Past("b", "host-2", True, 9999.0)], rates=rates) == {"a": "mitigate"}


@pytest.mark.parametrize(
    ("quiet", "action"),
    [
        ("11:00-13:00", "wait"),
        ("12:00-12:01", "wait"),
        ("11:00-12:00", "mitigate"),
        ("22:00-06:00", "mitigate"),
        ("22:00-13:00", "wait"),
    ],
)
def test_quiet_hours(quiet, action):
    assert actions([guest("a")], quiet=[quiet]) == {"a": action}


@pytest.mark.parametrize("text", ["noon", "11-13", "11:00", "11:00-11:00", "25:00-26:00", "11:5-12:00", ""])
def test_quiet_hours_that_are_none(text):
    with pytest.raises(BadRequest, match="quiet_hours"):
        QuietHours.parse(text, "[qos] quiet_hours")


def test_one_that_migrates_waits():
    assert actions([guest("a", migrating=True)]) == {"a": "wait"}


def test_without_any_model_the_policy_decides():
    assert actions([guest("a")], Sensitivity()) == {"a": "mitigate"}
