"""Counters of instances outlive their samples, and what models decided is joined with what came of it."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from pondstack.db.store import registry
from pondstack.db.store.history import History
from pondstack.db.store.telemetry import LATE_SECONDS, Retention, Telemetry
from pondstack.domain.history import InstanceFacts
from pondstack.domain.sizing import Split
from pondstack.domain.telemetry import Metric
from pondstack.ledger.store import RememberedSplit
from pondstack.rpc.wire import Sample

PERIOD = 300
LONG_AGO = 2 * LATE_SECONDS
DRAM, IPC = str(Metric.DRAM_BOUND_PERCENT), str(Metric.INSTRUCTIONS_PER_CYCLE)
HOUR = timedelta(hours=1)


@pytest.fixture
def now():
    return datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def history(database):
    return History(database, lambda: 7 * 86400)


@pytest.fixture
def telemetry(database):
    return Telemetry(database, lambda: Retention(7200, PERIOD, 7200, 900))


@pytest.fixture
def instance(history, now):
    uuid = str(uuid4())

    def tell(changed=-24 * HOUR, **values):
        given = {"memory_mib": 8192, "deleted_at": None, **values}
        history.record(
            [
                InstanceFacts(
                    uuid,
                    "p",
                    "m1",
                    given["memory_mib"],
                    4,
                    "",
                    "",
                    "",
                    "x",
                    now - 24 * HOUR,
                    now + changed,
                    given["deleted_at"],
                )
            ]
        )
        return uuid

    tell()
    return tell


def write(telemetry, uuid, value, age=LONG_AGO, metric=DRAM, readings=10, **more):
    telemetry.write("h1", [Sample(uuid, metric, None, age, readings, value, value, value, **more)])


def counters(reader, now):
    return {item.instance_uuid: item for item in reader.history.counters(now - 28 * 24 * HOUR)}


def test_periods_become_means_and_each_counts_once(instance, telemetry, reader, now):
    uuid = instance()
    write(telemetry, uuid, 10.0, LONG_AGO + 700)
    write(telemetry, uuid, 40.0, readings=20)
    write(telemetry, uuid, 5.0, metric="untouched_mib")
    telemetry.tidy()
    telemetry.tidy()
    found = counters(reader, now)[uuid]
    assert found.counters == {DRAM: pytest.approx(30.0)}
    assert (found.project_id, found.memory_mib, found.vcpus, found.source) == ("p", 8192, 4, "measured")
    write(telemetry, uuid, 90.0, LATE_SECONDS + PERIOD, readings=30, source="synthetic")
    write(telemetry, uuid, 1.5, LATE_SECONDS + PERIOD, metric=IPC)
    telemetry.tidy()
    found = counters(reader, now)[uuid]
    assert found.counters == {DRAM: pytest.approx(60.0), IPC: 1.5}
    assert found.source == "synthetic"


def test_nothing_measured_is_unknown(instance, telemetry, reader, now):
    uuid = instance()
    telemetry.write("h1", [Sample(uuid, DRAM, None, LONG_AGO, reason="no counters here")])
    telemetry.tidy()
    assert counters(reader, now)[uuid].counters == {}


def test_another_flavor_begins_anew(instance, telemetry, reader, now):
    uuid = instance()
    write(telemetry, uuid, 10.0)
    telemetry.tidy()
    instance(-HOUR / 12, memory_mib=4096)
    assert counters(reader, now)[uuid].counters == {}


def test_who_ended_long_ago_is_forgotten(instance, telemetry, history, reader, now):
    uuid = instance()
    write(telemetry, uuid, 10.0)
    telemetry.tidy()
    instance(-HOUR, deleted_at=now - HOUR)
    history.tidy()
    assert counters(reader, now)[uuid].counters
    assert reader.history.counters(now) == []
    History(history._database, lambda: 60).tidy()
    assert counters(reader, now) == {}


def remember(ledger, uuid, version="um-1", source="untouched", pool_mib=4096):
    split = Split(8192 - pool_mib, pool_mib, source, 0.98, "", version, {"pdm": 5} if version else {})
    ledger.remember_splits([RememberedSplit(uuid, "f", split, 60.0)])


def decided(reader, now):
    return {item.instance_uuid: item for item in reader.history.decided(now - 28 * 24 * HOUR, 0.5)}


def test_what_came_of_a_decision(instance, telemetry, ledger, reader, now):
    uuid = instance()
    remember(ledger, uuid)
    before = decided(reader, now)[uuid]
    assert (before.untouched_mib, before.observed_seconds, before.whole_life) == (None, 0, False)
    assert (before.model_version, before.pool_mib, before.pdm_percent) == ("um-1", 4096, 5.0)
    for age in (1200, 600, 0):
        write(telemetry, uuid, 5000.0, age, metric="untouched_mib")
    assert decided(reader, now)[uuid].untouched_mib == 5000
    assert decided(reader, now)[uuid].observed_seconds == pytest.approx(1200, abs=5)


def test_an_ended_one_counts_if_enough_of_its_life_was_seen(history, telemetry, ledger, reader, now):
    uuid = str(uuid4())
    born = now - HOUR / 3
    for age in (1200, 600, 1):
        write(telemetry, uuid, 5000.0, age, metric="untouched_mib")
    facts = InstanceFacts(uuid, "p", "m1", 8192, 4, "", "", "", "x", born, now, now)
    history.record([facts])
    remember(ledger, uuid)
    assert decided(reader, now + HOUR)[uuid].whole_life


def test_only_models_decisions_count(instance, ledger, reader, now):
    remember(ledger, instance(), version="", source="static")
    assert decided(reader, now) == {}


def test_what_serves_is_noted_beside_the_manifest(database):
    def work(session):
        registry.add(session, "um-1", {"kind": "um"}, b"x")
        registry.note_serving(session, "um-1", {"budget": {"left": 1.5}})

    database.write(work)
    found = database.read(lambda session: registry.find(session, "um-1"))
    assert (found.serving, found.manifest) == ({"budget": {"left": 1.5}}, {"kind": "um"})
