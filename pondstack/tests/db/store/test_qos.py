"""What the QoS monitor keeps: decisions, what was predicted again, tenants' figures, notifications that were sent."""

from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import update

from pondstack.db.models import PerformanceRow, QosDecisionRow
from pondstack.db.read.qos import SqlQos
from pondstack.db.store import mitigation_notices, mitigations, qos, repredictions
from pondstack.domain.errors import Conflict, NotFound
from pondstack.domain.mitigation import Mitigation, MitigationMethod, MitigationState, MitigationTrigger
from pondstack.ledger.qos_records import QosDecision, Reprediction

VM, OTHER = str(uuid4()), str(uuid4())
LEFT = QosDecision(VM, "a1", "blue", "h1", "insensitive", "leave", "on", "touched 64 MiB", 1.5, None, {"pdm": 5})
MITIGATED = replace(LEFT, verdict="sensitive", action="mitigate", expected_percent=None, untouched_mib=512.25)
AGAIN = Reprediction(VM, "blue", 8192, 2048, 3072, 4096.5, 172800, "measured")
BEGUN = Mitigation(
    str(uuid4()),
    VM,
    "h1",
    "blue",
    MitigationMethod.COPY,
    MitigationState.CLAIMING,
    MitigationTrigger.MONITOR,
    False,
    1024,
    1024,
)


def decided(database, *items):
    database.write(lambda session: qos.keep(session, items))


def test_decisions_are_kept_whole_and_listed_the_newest_first(database):
    reader = SqlQos(database)
    decided(database, LEFT, replace(LEFT, consumer_uuid=OTHER))
    decided(database)
    decided(database, MITIGATED)
    newest, of_other, oldest = reader.decisions()
    assert of_other.consumer_uuid == OTHER
    for found, given in ((newest, MITIGATED), (oldest, LEFT)):
        assert found.decided_at > 0
        assert replace(found, id=0, decided_at=0.0) == given
    assert [item.id for item in reader.decisions(limit=1)] == [newest.id]
    assert [item.id for item in reader.decisions(marker=newest.id)] == [of_other.id, oldest.id]
    assert [item.id for item in reader.decisions(consumer_uuid=VM, action="leave")] == [oldest.id]
    with pytest.raises(NotFound, match="begin the list again"):
        reader.decisions(marker=newest.id + 1)


def test_the_newest_decision_of_each_vm(database):
    assert database.read(qos.newest) == {}
    decided(database, LEFT, replace(LEFT, consumer_uuid=OTHER))
    decided(database, MITIGATED)
    assert database.read(qos.newest) == {
        VM: ("a1", "sensitive", "mitigate", "on"),
        OTHER: ("a1", "insensitive", "leave", "on"),
    }


def perform(database, metric="p99_ms", value=10.0, *, higher_is_better=False):
    database.write(lambda session: qos.perform(session, VM, "blue", metric, value, higher_is_better=higher_is_better))
    return {item.metric: item for item in SqlQos(database).performances(VM)}


def grow_old(database, row, column, seconds):
    database.write(
        lambda session: session.execute(
            update(row).values({column: getattr(row, column) - seconds}),
            execution_options={"synchronize_session": False},
        )
    )


def test_readings_of_a_metric_come_to_a_mean_until_their_direction_changes(database):
    perform(database)
    with pytest.raises(Conflict, match="less than 60 s old"):
        perform(database)
    grow_old(database, PerformanceRow, "updated_at", 61)
    found = perform(database, value=20.0)["p99_ms"]
    assert (found.readings, found.mean, found.newest) == (2, 15.0, 20.0)
    grow_old(database, PerformanceRow, "updated_at", 61)
    found = perform(database, value=3.0, higher_is_better=True)["p99_ms"]
    assert (found.readings, found.mean, found.higher_is_better) == (1, 3.0, True)


def test_metrics_of_an_instance_are_few(database):
    for number in range(qos.MOST_METRICS):
        perform(database, f"m{number}")
    with pytest.raises(Conflict, match="8 metrics already"):
        perform(database, "one more")


def test_what_is_old_is_forgotten(database):
    decided(database, LEFT)
    perform(database)
    grow_old(database, QosDecisionRow, "decided_at", 3700)
    grow_old(database, PerformanceRow, "updated_at", 3700)
    decided(database, MITIGATED)
    perform(database, "tps")
    database.write(lambda session: qos.prune(session, 3600.0))
    reader = SqlQos(database)
    assert [item.action for item in reader.decisions()] == ["mitigate"]
    assert [item.metric for item in reader.performances()] == ["tps"]


def test_what_is_predicted_again_replaces_all_that_was(database):
    reader = SqlQos(database)
    smaller = replace(AGAIN, consumer_uuid=OTHER, wanted_mib=1024)
    database.write(lambda session: repredictions.keep(session, [AGAIN, smaller]))
    found = reader.reprediction(VM)
    assert found is not None
    assert found.predicted_at > 0
    assert replace(found, predicted_at=0.0) == AGAIN
    assert reader.reclaimable() == (2, 1024)
    assert database.read(repredictions.wanted) == {VM: 3072, OTHER: 1024}
    unchanged = replace(AGAIN, wanted_mib=2048)
    database.write(lambda session: repredictions.keep(session, [unchanged]))
    assert reader.reprediction(OTHER) is None
    assert database.read(repredictions.wanted) == {}
    database.write(lambda session: repredictions.keep(session, []))
    assert reader.reclaimable() == (0, 0)


def told(database):
    found = database.read(mitigation_notices.pending)
    for record, kind in found:
        for _ in range(2):
            database.write(lambda session, uuid=record.uuid, kind=kind: mitigation_notices.note(session, uuid, kind))
    return [(record.uuid, kind) for record, kind in found]


@pytest.mark.parametrize(("state", "kind"), [("done", "end"), ("aborted", "end"), ("failed", "error")])
def test_each_notification_is_pending_until_it_was_sent(database, state, kind):
    database.write(lambda session: mitigations.add(session, BEGUN))
    assert told(database) == [(BEGUN.uuid, "start")]
    assert told(database) == []
    ended = replace(BEGUN, state=MitigationState(state))
    database.write(lambda session: mitigations.change(session, ended, moved=True, ended=True))
    assert told(database) == [(BEGUN.uuid, kind)]
    database.write(mitigation_notices.prune)
    assert told(database) == []
    # One that is forgotten is forgotten with its notifications: who has its UUID again is told of anew.
    database.write(lambda session: mitigations.prune(session, -1.0))
    database.write(mitigation_notices.prune)
    database.write(lambda session: mitigations.add(session, BEGUN))
    assert told(database) == [(BEGUN.uuid, "start")]
