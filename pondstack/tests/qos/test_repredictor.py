"""A round of re-prediction over a real ledger, and the second opinion on sensitivity."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest

from pondstack.db.connection.engine import Database
from pondstack.db.read.reader import SqlReader
from pondstack.db.store import SQL, registry, splits
from pondstack.db.store.history import History
from pondstack.db.store.telemetry import LATE_SECONDS, Retention, Telemetry
from pondstack.domain.errors import NotLeader
from pondstack.domain.history import GuestCounters, InstanceFacts
from pondstack.domain.sizing import CORRECTED, Split
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.store import RememberedSplit
from pondstack.prediction.choice import Limits
from pondstack.prediction.latency_rules import COMPONENTS, WeighedSum
from pondstack.qos import outliers
from pondstack.qos.outliers import Outliers
from pondstack.qos.repredictor import Repredictor
from pondstack.rpc.wire import Sample
from tests.fixtures import lead
from tests.fixtures.schema import migrate

PERIOD = 300
NOW = datetime.now(UTC)


@pytest.fixture
def database(tmp_path):
    made = Database.from_url(migrate(tmp_path / "ledger.db"))
    yield made
    made.dispose()


@pytest.fixture
def old(database):
    """Make an instance of 16 GiB, of some age, of which 8 GiB were untouched lately; returns its UUID."""
    ledger = Ledger(database, lead(database, "test"), store=SQL)
    history = History(database, lambda: 90 * 86400)
    telemetry = Telemetry(database, lambda: Retention(7200, PERIOD, 90 * 86400, 900))

    def make(days=4, source="untouched", untouched=8192.0, seen=True):
        uuid, begun = str(uuid4()), NOW - timedelta(days=days)
        history.record([InstanceFacts(uuid, "p", "m16", 16384, 4, "", "", "", "x", begun, begun)])
        split = Split(14336, 2048, source, 0.98, "", "um-1", {"pdm": 5})
        ledger.remember_splits([RememberedSplit(uuid, "f", split)])
        if seen:
            age = LATE_SECONDS + 2.0 * PERIOD
            telemetry.write("h1", [Sample(uuid, "untouched_mib", None, age, 1, *[untouched] * 3)])
            telemetry.tidy()
        return uuid

    return make


def run(database, fence=lambda _session: None):
    qos = SimpleNamespace(repredict_after_seconds=86400, repredict_margin_percent=10.0)
    conf = SimpleNamespace(qos=qos, telemetry=SimpleNamespace(period_seconds=PERIOD))
    reader = SqlReader(database)
    Repredictor(conf, database, reader, fence).run()
    return reader.qos


def test_what_could_be_pooled_is_kept(database, old):
    uuid = old()
    found = run(database)
    assert found.reprediction(uuid).wanted_mib == 7168, "8192 less 5 % of 16384, in whole slices"
    assert found.reclaimable() == (1, 5120)


@pytest.mark.parametrize("values", [{"days": 0.5}, {"source": "fixed"}, {"source": "control"}, {"seen": False}])
def test_who_is_left_alone(database, old, values):
    assert run(database).reprediction(old(**values)) is None


def test_one_that_was_mitigated_stays_as_it_is(database, old):
    uuid = old()
    local = RememberedSplit(uuid, "f", Split(16384, 0, CORRECTED, 1.0, "mitigated"))
    database.write(lambda session: splits.correct(session, local))
    assert run(database).reprediction(uuid) is None


def test_a_round_replaces_the_one_before(database, old):
    first = old()
    run(database)
    History(database, lambda: 90 * 86400).record(
        [InstanceFacts(first, "p", "m16", 16384, 4, "", "", "", "x", NOW - timedelta(days=4), NOW, NOW)]
    )
    assert run(database).reclaimable() == (0, 0)


def test_a_former_leader_keeps_nothing(database, old):
    def fence(_session):
        raise NotLeader("another one leads")

    old()
    with pytest.raises(NotLeader):
        run(database, fence)
    assert SqlReader(database).qos.reclaimable() == (0, 0)


MANIFEST = {
    "kind": "li",
    "predictor": "analytic",
    "features": list(COMPONENTS),
    "curves": {"5": [{"gain": 30.0, "loss": 1.0, "threshold": 4.0}, {"gain": 60.0, "loss": 9.0, "threshold": 40.0}]},
    "data": {"samples": {"measured": 40}},
}
COUNTERS = dict.fromkeys(COMPONENTS, 10.0)


@pytest.fixture
def second(database, monkeypatch):
    """What a stored analytic model says of one guest whose counters are known, and of one whose are not."""
    monkeypatch.setattr(outliers.runtime, "missing", list)
    known = [GuestCounters("vm", "p", 8192, 4, COUNTERS), GuestCounters("other", "p", 8192, 4, {})]
    history = SimpleNamespace(counters=lambda _since: known)

    def ask(manifest=MANIFEST, blob=None, state=None):
        weights = WeighedSum({"demand": 1.0, "demand by parallelism": 0.0, "stores": 0.5, "traffic": 0.0})
        database.write(lambda session: registry.add(session, "li-1", manifest, blob or weights.blob()))
        if state:
            database.write(lambda session: registry._set(session, "li-1", state))
        return Outliers(database, history, lambda: Limits(98.0, 2.0, 2.0)).model()

    return ask


def test_a_model_that_does_not_serve_is_a_second_opinion(second):
    found = second()
    assert (found.version, found.slowdowns) == ("li-1", {"vm": pytest.approx(15.0)})
    assert found.threshold(5.0) == 4.0, "the point that costs more than is allowed is not chosen"
    assert found.threshold(1.0) is None


def test_a_broken_or_failed_one_or_a_forest_is_none(second, caplog):
    assert second(blob=b"no weights") is None
    assert "no second opinion" in caplog.text


@pytest.mark.parametrize(
    ("manifest", "state"), [({**MANIFEST, "predictor": "forest"}, None), (MANIFEST, "failed"), (MANIFEST, "demoted")]
)
def test_others_are_not_asked(second, manifest, state):
    assert second(manifest, state=state) is None
