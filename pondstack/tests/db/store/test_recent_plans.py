"""What SQL tells of plans and readings by their age."""

from uuid import uuid4

import pytest
from sqlalchemy import insert, select, update

from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.engine import Database
from pondstack.db.models import HostTelemetryRow, PlanActionRow, PlanRow, table
from pondstack.db.store import plans
from pondstack.db.store.host_telemetry import HostTelemetry
from pondstack.domain.plan import Action, ActionKind, ActionState, Plan, PlanKind, PlanState, PlanTrigger
from tests.fixtures.schema import migrate

HOUR = 3600.0


@pytest.fixture
def database(tmp_path):
    made = Database.from_url(migrate(tmp_path / "plans.db"), retry_seconds=10)
    yield made
    made.dispose()


def add(session, *, age, kind=PlanKind.CONSOLIDATE, begun_age=None):
    plan = Plan(str(uuid4()), kind, PlanTrigger.POLICY, PlanState.RUNNING, (), inputs={"cause": "none"})
    plans.add(session, plan)
    now = session.execute(select(now_seconds())).scalar_one()
    session.execute(update(table(PlanRow)).where(table(PlanRow).c.uuid == plan.uuid).values(created_at=now - age))
    if begun_age is not None:
        action = Action(1, ActionKind.MIGRATE, "a", "a", "v", "b", state=ActionState.RUNNING, tries=1)
        plans.add_actions(session, plan.uuid, [action])
        rows = table(PlanActionRow)
        session.execute(update(rows).where(rows.c.plan_uuid == plan.uuid).values(begun_at=now - begun_age))
    return plan.uuid


def test_recent_plans(database):
    uuid = database.write(lambda session: (add(session, age=100.0), add(session, age=5.0))[1])
    [found] = database.read(lambda session: plans.recent(session, 50.0))
    assert (found.uuid, found.cause) == (uuid, "none")


def test_when_the_budget_is_free_again(database):
    def first():
        return database.read(lambda session: plans.first_begun(session, "live-migrate", HOUR))

    assert first() is None
    for age, kind in ((10.0, PlanKind.CONSOLIDATE), (1000.0, PlanKind.DRAIN), (4000.0, PlanKind.CONSOLIDATE)):
        database.write(lambda session, age=age, kind=kind: add(session, age=age, kind=kind, begun_age=age))
    now = database.read(lambda session: session.execute(select(now_seconds())).scalar_one())
    assert first() == pytest.approx(now - 10.0, abs=5.0), "drains are not counted, nor what is out of the window"


def test_the_newest_reading_of_a_host_that_sleeps_is_kept(database):
    def write(session):
        now = int(session.execute(select(now_seconds())).scalar_one())
        rows = [("slept", "cpus", 9000), ("slept", "cpus", 8000), ("awake", "cpus", 8000), ("awake", "cpus", 10)]
        values = [
            {"host": host, "metric": metric, "taken_at": now - age, "value": float(age), "source": "measured"}
            for host, metric, age in rows
        ]
        session.execute(insert(table(HostTelemetryRow)), values)

    database.write(write)
    telemetry = HostTelemetry(database, lambda: 7200)
    telemetry.tidy()
    found = telemetry.hosts()
    assert {host: [told.value for told in found[host]["cpus"]] for host in found} == {
        "slept": [8000.0],
        "awake": [10.0],
    }
