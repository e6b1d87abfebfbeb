"""Features say what was known before a start: nothing of the future, and NaN for what nobody knows."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pondstack.domain.history import Lifetime
from pondstack.prediction import features
from pondstack.prediction.examples import examples
from pondstack.prediction.features import (
    FEATURES,
    FutureRecord,
    History,
    Record,
    Request,
    Vocabulary,
    past_records,
    records,
    vector,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORDS = Vocabulary(("linux", "windows"), ("nova",))
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
REQUEST = Request("p", 8192, 4)


def of(request=REQUEST, history=(), as_of=NOW):
    return dict(zip(FEATURES, vector(request, history, as_of, WORDS), strict=True))


def lifetime(uuid="i", created=NOW - 9 * HOUR, deleted=NOW - HOUR, untouched=4096, coverage=1.0, project="p"):
    return Lifetime(uuid, project, "m8", 8192, 4, "linux", "nova", "", created, deleted, untouched, coverage)


def test_a_record_of_the_future_is_refused():
    with pytest.raises(FutureRecord, match="after"):
        of(history=[Record("p", 0.5, NOW + timedelta(seconds=1))])


def test_what_happens_later_changes_no_feature():
    """Whatever becomes of instances that end at a start or later, the features of that start are the same."""
    past = [lifetime(f"a{day}", NOW - timedelta(days=day, hours=3), NOW - timedelta(days=day)) for day in range(1, 9)]
    start = lifetime("start", NOW, NOW + 5 * HOUR)
    later = [
        lifetime("running", NOW - 20 * HOUR, NOW + 2 * HOUR, untouched=0),
        lifetime("next", NOW + HOUR, NOW + 2 * HOUR, untouched=0),
        lifetime("never ended", NOW - 40 * HOUR, None, untouched=0),
    ]
    until = NOW + 48 * HOUR

    def seen(items):
        (mine,) = (item for item in examples(items, until, 0.5) if item.as_of == NOW)
        return vector(mine.request, mine.history, mine.as_of, WORDS)

    assert seen([*past, start, *later]) == seen([*past, start])
    # One that lives for weeks: what its marks say by then counts, and nothing that they or its label say afterwards.
    long = lifetime("long", NOW - 20 * DAY, None, untouched=2048)
    marked = replace(long, marks=((NOW - 9 * DAY, 4000), (NOW - 2 * DAY, 2048)))
    assert seen([*past, start, marked]) != seen([*past, start, long]) == seen([*past, start])
    later_words = [
        replace(marked, untouched_mib=0, marks=(*marked.marks, (NOW + HOUR, 0))),
        replace(marked, deleted_at=NOW + HOUR, untouched_mib=0),
        replace(marked, untouched_mib=None, coverage=0.0),
    ]
    assert {str(seen([*past, start, word])) for word in later_words} == {str(seen([*past, start, marked]))}


def test_an_instance_counts_once_by_its_newest_mark_then_by_its_end():
    marks = ((NOW - 9 * DAY, 4096), (NOW - 2 * DAY, 2048), (NOW + 5 * DAY, 1024))
    item = replace(lifetime("long", NOW - 20 * DAY, NOW + 7 * DAY, untouched=512), marks=marks)
    history = History(past_records([item], NOW + 8 * DAY, 0.5))
    days = (-21, -9, -8, -2, 0, 5, 6, 7, 8)
    shares = [[record.share for record in history.before("p", NOW + day * DAY)] for day in days]
    assert shares == [[], [0.5], [0.5], [0.25], [0.25], [0.125], [0.125], [0.0625], [0.0625]]
    assert History(past_records([item], NOW - 12 * DAY, 0.5)).projects() == []
    young = replace(item, created_at=NOW - 9 * DAY - HOUR, marks=marks[:1])
    assert History(past_records([young], NOW, 0.5)).projects() == []


def test_an_example_is_known_by_its_marks_before_its_end():
    item = replace(lifetime("long", NOW - 20 * DAY, None, untouched=512), marks=((NOW - 9 * DAY, 4096),))
    (example,) = examples([item], NOW, 0.5)
    assert (example.share, example.ended_at) == (0.0625, NOW)
    assert example.known_at(NOW) is example
    before = example.known_at(NOW - DAY)
    assert (before.share, before.ended_at) == (0.5, NOW - 9 * DAY)
    assert example.known_at(NOW - 10 * DAY) is None


def test_what_is_not_known_is_nan_and_never_zero():
    got = of(Request("p", 8192, 4, image_os="plan9"))
    missing = {name for name, value in got.items() if math.isnan(value)}
    assert missing == set(FEATURES) - {"memory_mib", "vcpus", "hour", "weekday"}
    assert not any(value == 0.0 for value in got.values() if not math.isnan(value)) or NOW.weekday() == 0


def test_percentiles_are_of_the_last_week_and_the_least_of_four():
    shares = [Record("p", 0.1 * day, NOW - timedelta(days=day)) for day in range(1, 7)]
    got = of(history=[Record("p", 0.05, NOW - timedelta(days=20)), *shares])
    assert got["week_count"] == 6
    assert got["weeks_count"] == 7
    assert got["week_least"] == pytest.approx(0.1)
    assert got["week_most"] == pytest.approx(0.6)
    assert got["week_p50"] == pytest.approx(0.35)
    assert got["weeks_p1"] == pytest.approx(0.053)


def test_words_are_known_by_their_frequency():
    requests = [Request("p", 1, 1, image_os=name) for name in ("b", "a", "b", "")]
    assert Vocabulary.of(requests).image_os == ("b", "a")
    assert of(Request("p", 8192, 4, image_os="windows", zone="nova"))["image_os"] == 1.0


def test_history_ends_at_the_moment_and_begins_four_weeks_before():
    days = (30, 27, 1, 0, -1)
    history = History(Record("p", 0.5, NOW - timedelta(days=day)) for day in days)
    assert [NOW - item.seen_at for item in history.before("p", NOW)] == [timedelta(days=day) for day in (27, 1, 0)]
    assert history.before("q", NOW) == []


@pytest.mark.parametrize("bad", [{"untouched": None}, {"coverage": 0.49}, {"created": NOW - 5 * HOUR, "deleted": None}])
def test_what_says_too_little_is_no_record(bad):
    assert records([lifetime(**bad)], NOW, 0.5) == []


def test_a_young_instance_counts_where_it_has_touched_more_than_all_others():
    settled = lifetime(untouched=4096)
    young = lifetime("young", NOW - HOUR, None, untouched=1024)
    assert [item.share for item in records([settled, young], NOW, 0.5)] == [0.5, 0.125]
    assert len(records([settled, replace(young, untouched_mib=6000)], NOW, 0.5)) == 1
    aged = replace(young, created_at=NOW - 2 * features.SETTLED, untouched_mib=6000)
    assert len(records([settled, aged], NOW, 0.5)) == 2
