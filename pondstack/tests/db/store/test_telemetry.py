"""What agents measured is kept, summed up by periods and forgotten, on every database."""

from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import select, text

from pondstack.db.connection.engine import Database
from pondstack.db.models import TelemetryRow
from pondstack.db.store.telemetry import LATE_SECONDS, Retention, Telemetry, _oldest
from pondstack.rpc.wire import Sample

VM = str(uuid4())
PERIOD = 300
LONG_AGO = 2 * LATE_SECONDS


def sample(value: float, age_seconds: float = 0.0, metric: str = "untouched_mib", **more) -> Sample:
    readings = more.pop("readings", 1)
    return Sample(VM, metric, None, age_seconds, readings, value, value, value, **more)


@pytest.fixture
def telemetry(database) -> Telemetry:
    return Telemetry(database, lambda: Retention(3600, PERIOD, 7200))


def rows(database: Database) -> list[TelemetryRow]:
    query = select(TelemetryRow).order_by(TelemetryRow.period_seconds, TelemetryRow.taken_at, TelemetryRow.metric)
    return list(database.read(lambda session: session.execute(query).scalars().all()))


def periods(database: Database) -> list[TelemetryRow]:
    return [row for row in rows(database) if row.period_seconds]


def test_a_batch_is_kept_with_its_reasons(database, telemetry):
    missing = Sample(VM, "hot_mib", 1, 5.0, reason="x" * 300)
    telemetry.write("h1", [sample(7.5), missing])
    telemetry.write("h1", [])
    hot, untouched = rows(database)
    assert (hot.node, hot.readings, hot.mean, len(hot.reason)) == (1, 0, None, 255)
    assert (untouched.node, untouched.readings, untouched.mean, untouched.reason) == (-1, 1, 7.5, "")
    assert 4 <= untouched.taken_at - hot.taken_at <= 6


def test_a_batch_that_comes_twice_is_kept_once(database, telemetry, monkeypatch):
    monkeypatch.setattr("pondstack.db.store.telemetry._now", lambda _session: 1_000_000)
    for _ in range(2):
        telemetry.write("h1", [sample(1.0), sample(1.0)])
    assert len(rows(database)) == 1


def test_complete_periods_are_summed_up_once(database, telemetry):
    telemetry.write("h1", [sample(value, LONG_AGO + value * 10) for value in range(1, 121)])
    telemetry.write("h1", [sample(9.0)])
    telemetry.tidy()
    found = periods(database)
    assert sum(row.readings for row in found) == 120
    assert 4 <= len(found) <= 6
    assert all(row.taken_at % PERIOD == 0 and row.host == "h1" and row.period_seconds == PERIOD for row in found)
    assert (min(row.minimum for row in found), max(row.maximum for row in found)) == (1.0, 120.0)
    assert sum(row.mean * row.readings for row in found) == pytest.approx(sum(range(1, 121)))
    telemetry.tidy()
    assert len(periods(database)) == len(found)


def test_a_mean_weighs_its_readings_and_reasons_count_nothing(database, telemetry, monkeypatch):
    monkeypatch.setattr("pondstack.db.store.telemetry.AT_A_TIME_SECONDS", PERIOD)
    missing = Sample(VM, "hot_mib", None, LONG_AGO, reason="not yet")
    telemetry.write("h1", [sample(1.0, LONG_AGO, readings=3), missing])
    taken = rows(database)[0].taken_at
    telemetry.write("h2", [sample(5.0, LONG_AGO)])
    telemetry.tidy()
    assert {(row.host, row.mean) for row in periods(database)} == {("h1", 1.0), ("h2", 5.0)}
    assert {row.metric for row in periods(database)} == {"untouched_mib"}
    assert taken - PERIOD < periods(database)[0].taken_at <= taken


def test_a_sample_that_comes_too_late_changes_no_period(database, telemetry):
    telemetry.write("h1", [sample(1.0, LONG_AGO)])
    telemetry.tidy()
    telemetry.write("h1", [sample(2.0, LONG_AGO + 5)])
    telemetry.tidy()
    telemetry.write("h1", [sample(3.0, LONG_AGO + PERIOD)])
    telemetry.tidy()
    assert [row.mean for row in periods(database)] == [1.0]


def test_what_is_old_is_forgotten(database, telemetry):
    telemetry.write("h1", [sample(1.0, 4000.0), sample(2.0)])
    telemetry.tidy()
    assert sorted(row.mean for row in rows(database) if not row.period_seconds) == [2.0]
    assert [row.mean for row in periods(database)] == [1.0], "a period outlives its samples"
    Telemetry(database, lambda: Retention(3600, PERIOD, 3600)).tidy()
    assert periods(database) == []


def test_samples_outlive_the_option_until_their_period_is_complete(database, telemetry):
    telemetry.write("h1", [sample(1.0, 4000.0)])
    Telemetry(database, lambda: Retention(3600, 7200, 7200)).tidy()
    assert [row.mean for row in rows(database)] == [1.0]


def test_another_controller_summed_up_the_same(database, telemetry, monkeypatch):
    """A leader that was paused: what it would add is there already, and it goes on to forget what is old."""
    telemetry.write("h1", [sample(1.0, LONG_AGO)])
    telemetry.tidy()
    monkeypatch.setattr("pondstack.db.store.telemetry._next_start", lambda *_: 0)
    telemetry.tidy()
    assert [row.mean for row in periods(database)] == [1.0]


def test_the_newest_of_each_metric_and_node_is_read(telemetry, reader):
    telemetry.write("h1", [sample(1.0, 60.0), sample(2.0, 30.0, metric="huge_mib")])
    telemetry.write("h2", [sample(3.0), Sample(VM, "hot_mib", 1, 5.0, reason="not yet")])
    telemetry.write("h2", [replace(sample(9.0), consumer_uuid=str(uuid4()))])
    found = [(item.metric, item.node, item.host, item.mean, item.reason) for item in reader.telemetry(VM)]
    assert found == [
        ("hot_mib", 1, "h2", None, "not yet"),
        ("huge_mib", None, "h1", 2.0, ""),
        ("untouched_mib", None, "h2", 3.0, ""),
    ]
    assert [item.mean for item in reader.telemetry(VM, metric="huge_mib")] == [2.0]
    assert reader.telemetry(str(uuid4())) == []


def test_the_history_is_read_newest_first(telemetry, reader):
    telemetry.write("h1", [sample(value, LONG_AGO - value * PERIOD) for value in (1.0, 2.0, 0.0)])
    telemetry.tidy()
    telemetry.write("h1", [sample(5.0)])
    assert [item.mean for item in reader.telemetry(VM, history="samples")] == [5.0, 2.0, 1.0, 0.0]
    assert [item.mean for item in reader.telemetry(VM, history="samples", limit=2)] == [5.0, 2.0]
    periods = reader.telemetry(VM, history="periods")
    assert [item.mean for item in periods] == [2.0, 1.0, 0.0]
    assert {item.period_seconds for item in periods} == {PERIOD}


def test_the_oldest_sample_is_found_without_reading_the_others(mariadb_migrated_url):
    """Else the query outlives [database] answer_seconds once there are some millions, and nothing is ever tidied."""
    database = Database.from_url(mariadb_migrated_url)
    Telemetry(database, lambda: Retention(3600, PERIOD, 7200)).write("h1", [sample(1.0, age) for age in range(2000)])

    def read(session):
        session.execute(text("FLUSH STATUS"))
        oldest = session.execute(_oldest(0)).scalar_one()
        counted = session.execute(text("SHOW SESSION STATUS LIKE 'Handler_read%'")).all()
        return oldest, sum(int(count) for _, count in counted)

    oldest, touched = database.read(read)
    assert oldest == min(row.taken_at for row in rows(database))
    assert touched < 20
    database.dispose()
