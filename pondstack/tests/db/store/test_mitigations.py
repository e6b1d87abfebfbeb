"""What SQL tells of a server's mitigations: the newest, and pages of them."""

from uuid import uuid4

import pytest
from sqlalchemy import select, update

from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.engine import Database
from pondstack.db.models import MitigationRow, table
from pondstack.db.store import mitigations
from pondstack.domain.errors import NotFound
from pondstack.domain.mitigation import Mitigation, MitigationMethod, MitigationState, MitigationTrigger
from tests.fixtures.schema import migrate

VM, OTHER = str(uuid4()), str(uuid4())


@pytest.fixture
def database(tmp_path):
    made = Database.from_url(migrate(tmp_path / "mitigations.db"), retry_seconds=10)
    yield made
    made.dispose()


def add(session, consumer, *, age):
    item = Mitigation(
        str(uuid4()),
        consumer,
        "h1",
        "blue",
        MitigationMethod.COPY,
        MitigationState.CLAIMING,
        MitigationTrigger.MONITOR,
        forced=False,
        pool_mib=2048,
        left_mib=2048,
    )
    mitigations.add(session, item)
    rows, now = table(MitigationRow), session.execute(select(now_seconds())).scalar_one()
    session.execute(update(rows).where(rows.c.uuid == item.uuid).values(created_at=now - age))
    return item.uuid


def test_the_newest_is_the_latest_in_whatever_order_they_came(database):
    for ages in ((30.0, 20.0, 10.0), (10.0, 20.0, 30.0)):
        consumer = str(uuid4())
        uuids = {age: database.write(lambda session, age=age, to=consumer: add(session, to, age=age)) for age in ages}
        found = database.read(lambda session, of=consumer: mitigations.latest(session, of))
        assert found.uuid == uuids[10.0]


def test_pages_begin_with_the_newest_and_end_at_no_marker_of_another_server(database):
    uuids = [database.write(lambda session, age=age: add(session, VM, age=age)) for age in (10.0, 20.0, 30.0)]
    others = database.write(lambda session: add(session, OTHER, age=15.0))

    def page(marker=None, limit=2):
        chosen = {"consumer_uuid": VM}
        found = database.read(lambda session: mitigations.records(session, chosen, limit=limit, marker=marker))
        return [item.uuid for item in found]

    assert page() == uuids[:2]
    assert page(uuids[1]) == uuids[2:]
    for unknown in (others, str(uuid4())):
        with pytest.raises(NotFound, match="start again without a marker"):
            page(unknown)
