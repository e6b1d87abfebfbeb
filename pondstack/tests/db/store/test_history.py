"""Nova's words and agents' samples become the history of instances, in any order, on every database."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from uuid import uuid4

import pytest
from sqlalchemy import insert, select

from pondstack.db.models import HistoryRow, TelemetryRow, table
from pondstack.db.read import marks
from pondstack.db.store.history import History
from pondstack.db.store.telemetry import Retention, Telemetry
from pondstack.domain.errors import NotFound
from pondstack.domain.history import InstanceFacts, Selection
from pondstack.rpc.wire import Sample

VM = str(uuid4())
HOUR = timedelta(hours=1)
GAP = 900


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def history(database) -> History:
    return History(database, lambda: 7 * 86400)


@pytest.fixture
def telemetry(database) -> Telemetry:
    return Telemetry(database, lambda: Retention(7200, 300, 7200, GAP))


@pytest.fixture
def created(now) -> InstanceFacts:
    return InstanceFacts(VM, "blue", "m1", 4096, 2, "", "linux", "az1", "web-17", now - HOUR, now - HOUR)


def everything(reader, now, **more):
    return reader.history.lifetimes(Selection(now - 30 * 24 * HOUR, now + HOUR, **more))


def look(mib: float, age_seconds: float, node: int | None = None, **more) -> Sample:
    return Sample(VM, "untouched_mib", node, age_seconds, 1, mib, mib + 1, mib + 2, **more)


def test_words_in_any_order_and_twice_say_the_same(history, reader, created, now):
    bigger = replace(created, flavor_name="m2", memory_mib=8192, changed_at=now - HOUR / 2)
    ended = replace(bigger, changed_at=now - HOUR / 4, deleted_at=now - HOUR / 4)
    found = set()
    for words in permutations([created, bigger, ended]):
        uuid = str(uuid4())
        for word in (*words, *words):
            history.record([replace(word, instance_uuid=uuid)])
        (one,) = [item for item in everything(reader, now) if item.instance_uuid == uuid]
        found.add((one.flavor_name, one.memory_mib, one.created_at, one.deleted_at, one.image_os, len(one.name_key)))
    assert found == {("m2", 8192, now - HOUR, now - HOUR / 4, "linux", 32)}


def test_a_name_is_kept_as_the_hash_of_its_pattern_with_the_salt_of_the_cloud(history, database, reader, created, now):
    history.record([created, replace(created, instance_uuid=str(uuid4()), name="Web-2")])
    History(database, lambda: 86400).record([replace(created, instance_uuid=str(uuid4()), name="db-2")])
    keys = [item.name_key for item in everything(reader, now)]
    assert len(set(keys)) == 2
    salts = database.read(lambda session: session.execute(select(HistoryRow.salt)).scalars().all())
    assert len(salts) == 1
    assert len(salts[0]) == 64


def test_the_label_outlives_its_samples(history, telemetry, reader, created):
    history.record([created])
    for mib, age in ((3000, 3000), (1000, 2400), (2000, 1800)):
        telemetry.write("h1", [look(mib, age), look(mib / 2, age, 1)])
    telemetry.write("h2", [look(2500, 60)])
    one = reader.history.lifetime(VM)
    assert one.untouched_mib == 1000
    # The first look counts for the 600 s before it, the way to the last one (1740 s) is longer than a gap.
    assert one.coverage == pytest.approx(1800 / 3600, abs=0.01)
    assert (one.source, one.deleted_at) == ("measured", None)
    assert [(item.node, item.untouched_mib) for item in reader.history.labels(VM)] == [(None, 1000), (1, 500)]


def test_a_missing_metric_is_unknown_never_zero(history, telemetry, reader, created):
    history.record([created])
    telemetry.write("h1", [Sample(VM, "untouched_mib", None, 5.0, reason="preallocated"), look(7.0, 5.0, 1)])
    one = reader.history.lifetime(VM)
    assert (one.untouched_mib, one.coverage) == (None, 0.0)
    with pytest.raises(NotFound, match="Nova has not told"):
        reader.history.lifetime(str(uuid4()))


def test_a_batch_that_comes_twice_or_late_observes_nothing_twice(telemetry, history, reader, created, monkeypatch, now):
    monkeypatch.setattr("pondstack.db.store.telemetry._now", lambda _session: int(now.timestamp()))
    history.record([created])
    for _ in range(2):
        telemetry.write("h1", [look(9.0, 1200.0)])
        telemetry.write("h1", [look(9.0, 600.0)])
    telemetry.write("h1", [look(8.0, 900.0)])
    (whole,) = reader.history.labels(VM)
    assert (whole.untouched_mib, whole.observed_seconds) == (8, 600)


def test_another_flavor_begins_a_new_label(history, telemetry, reader, created, now):
    history.record([created])
    telemetry.write("h1", [look(10.0, 3000.0)])
    resized = now - HOUR / 2
    history.record([replace(created, flavor_name="m2", memory_mib=8192, changed_at=resized)])
    assert reader.history.lifetime(VM).untouched_mib is None
    telemetry.write("h1", [look(20.0, 2000.0), look(5000.0, 1200.0, 1)])
    telemetry.write("h1", [look(6000.0, 1100.0)])
    one = reader.history.lifetime(VM)
    assert (one.untouched_mib, one.sized_at) == (6000, resized), "what was seen before says nothing of it"


def test_one_synthetic_sample_makes_the_label_synthetic(history, telemetry, reader, created):
    history.record([created])
    telemetry.write("h1", [look(9.0, 600.0, source="synthetic")])
    telemetry.write("h1", [look(8.0, 300.0)])
    assert reader.history.lifetime(VM).source == "synthetic"
    assert {item.source for item in reader.telemetry(VM, history="samples")} == {"synthetic", "measured"}


def test_labels_that_saw_too_little_do_not_train(history, telemetry, reader, created, now):
    history.record([created])
    telemetry.write("h1", [look(9.0, 1800.0)])
    telemetry.write("h1", [look(8.0, 1000.0)])
    assert [item.untouched_mib for item in everything(reader, now)] == [8]
    (one,) = everything(reader, now, min_coverage=0.9)
    assert (one.untouched_mib, one.instance_uuid) == (None, VM), "its life still counts"


def test_an_end_that_lies_ahead_is_not_known(history, reader, created, now):
    history.record([replace(created, deleted_at=now - HOUR / 4)])
    (one,) = reader.history.lifetimes(Selection(now - 2 * HOUR, now - HOUR / 2))
    assert one.deleted_at is None
    assert everything(reader, now)[0].deleted_at == now - HOUR / 4
    assert reader.history.lifetimes(Selection(now - HOUR / 8, now)) == []
    assert reader.history.lifetimes(Selection(now - 3 * HOUR, now - 2 * HOUR)) == []


def test_instances_are_chosen_by_project_and_flavor_the_newest_first(history, reader, created, now):
    for number, (project, flavor) in enumerate((("blue", "m1"), ("blue", "m2"), ("green", "m1"))):
        begun = now - HOUR + timedelta(minutes=number)
        history.record(
            [replace(created, instance_uuid=str(uuid4()), project_id=project, flavor_name=flavor, created_at=begun)]
        )
    assert [item.flavor_name for item in everything(reader, now, project_id="blue")] == ["m1", "m2"]
    assert [item.project_id for item in everything(reader, now, flavor_name="m1")] == ["blue", "green"]
    assert [item.project_id for item in everything(reader, now, limit=1)] == ["green"]


def test_the_system_of_an_image_is_known_of_the_next_instance_too(history, reader, created):
    image, other = str(uuid4()), str(uuid4())
    history.record([replace(created, image_uuid=image, image_os="")])
    assert history.unnamed_images() == [image]
    history.name_images({image: "debian"})
    assert history.unnamed_images() == []
    history.record([replace(created, instance_uuid=str(uuid4()), image_uuid=image, image_os="")])
    assert history.unnamed_images() == []
    assert reader.history.lifetime(VM).image_os == "debian"
    rebuilt = replace(created, image_uuid=other, image_os="", changed_at=created.changed_at + HOUR)
    history.record([rebuilt])
    assert reader.history.lifetime(VM).image_os == "", "another image, another system"


def test_how_far_novas_past_was_read_only_grows(history, reader):
    assert (history.read_until(), reader.history.complete_since()) == (None, None)
    history.complete(100, 200)
    history.complete(150, 190)
    assert (history.read_until(), int(reader.history.complete_since().timestamp())) == (200, 100)


def test_who_ended_long_ago_is_forgotten(database, history, telemetry, reader, created, now):
    stranger = str(uuid4())
    telemetry.write("h1", [look(9.0, 600.0), replace(look(9.0, 700.0), consumer_uuid=stranger)])
    history.record([replace(created, deleted_at=now)])
    history.tidy()
    assert reader.history.lifetime(VM).untouched_mib == 9
    History(database, lambda: 300).tidy()
    assert reader.history.lifetime(VM).untouched_mib == 9, "not yet"
    assert reader.history.labels(stranger) == [], "Nova never told of it"
    history.record([replace(created, deleted_at=now - HOUR)])
    History(database, lambda: 300).tidy()
    assert reader.history.labels(VM) == []


def test_a_long_life_has_a_mark_for_each_week_that_was_seen(history, reader, database, created, now):
    """Of periods alone, which are kept; a week that was hardly observed, or has not ended, gives none."""
    week = timedelta(days=7)
    begin = datetime.fromtimestamp(int(now.timestamp()) // marks.WEEK * marks.WEEK, UTC) - 3 * week
    history.record([replace(created, created_at=begin, changed_at=begin)])
    hours = [(0, 168, 900.0), (168, 340, 500.0), (168, 200, 700.0)]  # all of the first week, all but little of the next
    seen = {hour: mib for first, end, mib in hours for hour in range(first, end)}
    rows = [
        {
            "consumer_uuid": VM,
            "period_seconds": 3600,
            "taken_at": int((begin + hour * HOUR).timestamp()),
            "metric": "untouched_mib",
            "node": -1,
            "host": "h",
            "readings": 12,
            "minimum": mib,
            "mean": mib,
            "maximum": mib,
            "reason": "",
        }
        for hour, mib in seen.items()
        if not 190 <= hour < 330
    ]
    database.write(lambda session: session.execute(insert(table(TelemetryRow)), rows))

    def found(min_coverage: float):
        (one,) = everything(reader, now, marks=True, min_coverage=min_coverage)
        return one.marks

    assert found(0.9) == ((begin + week, 900),)
    assert found(0.5)[:2] == ((begin + week, 900), (begin + 2 * week, 500))
    assert everything(reader, now)[0].marks == ()
