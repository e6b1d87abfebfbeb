"""A leader of the former release knows the reason of a quarantine only: it leads before this one, after it, between it.

Its statements and moves are written out here, because they must stay as they were.
"""

from uuid import uuid4

import pytest
from sqlalchemy import insert, text

from pondstack.db.models import OperationRow, SliceRow
from pondstack.db.read import replica
from pondstack.db.read.reader import SqlReader
from pondstack.db.read.replica import differences, follow, load
from pondstack.db.store import SQL, journal
from pondstack.domain.causes import Cause
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.states import SliceState
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.moves import BUFFER_MOVES, MOVES
from pondstack.tests.ledger import test_buffers
from pondstack.tests.ledger.test_ledger import request
from tests.fixtures import lead
from tests.fixtures.ledgers import POOL

SLICES = text(
    "UPDATE slices SET state = :state, host = :host, allocation_uuid = :allocation, epoch = :epoch, reason = :reason"
    " WHERE pool_uuid = :pool AND slice_index < 2"
)
BUFFERS = text("UPDATE buffers SET state = :state, epoch = :epoch, reason = :reason WHERE buffer_index < 2")
MARK = text("UPDATE buffers SET reason = :reason WHERE buffer_index < 2")
MOVE = {"pool", "indexes", "from", "to", "host", "allocation", "reason"}
FAILED = "device_failed: failure {} of pool0: its device does not answer"


class FormerLeader:
    """Writes slices 0 and 1, or buffers 0 and 1, as the former release does, with the move in the journal."""

    def __init__(self, database):
        self.database = database
        self.epoch = lead(database, "former")

    def move(self, before, state, reason="", host=None, allocation=None, kind="quarantine"):
        values = {"state": str(state), "host": host, "allocation": allocation, "reason": reason, "pool": POOL}
        move = {"pool": POOL, "indexes": [0, 1], "from": str(before), "to": str(state), "reason": reason}
        move |= {"host": host, "allocation": allocation}
        assert set(move) == MOVE

        def work(session):
            session.execute(SLICES, {**values, "epoch": self.epoch})
            moment = session.execute(text("SELECT MAX(changed_at) FROM slices")).scalar_one()
            row = {"operation_id": str(uuid4()), "kind": kind, "fingerprint": "", "epoch": self.epoch}
            session.execute(insert(OperationRow).values(effect={MOVES: [move]}, created_at=moment, **row))

        self.database.write(work)

    def execute(self, statement, **values):
        self.database.write(lambda session: session.execute(statement, values))


@pytest.fixture
def former(ledger):
    return FormerLeader(ledger.database)


def next_leader(ledger):
    return Ledger(ledger.database, lead(ledger.database, "next"), store=SQL)


def causes(reader):
    """Return the causes and failures of slices 0 and 1, and hold the reader of records to the same."""
    mine = [aged.item for aged in reader.rack().slices][:2]
    assert [item.cause for item in mine] == [item.cause for item in reader.slices(POOL)][:2]
    return {(item.cause, item.failure) for item in mine}


def held(ledger):
    uuid = ledger.slices.assign("op-1", request())["allocation_uuid"]
    ledger.slices.acknowledge("op-1", uuid, "h1")
    return uuid


@pytest.mark.parametrize("cause", sorted(set(Cause) - {Cause.UNKNOWN}))
def test_what_it_sets_aside_has_its_cause(reader, former, cause):
    former.move(SliceState.FREE, SliceState.QUARANTINED, f"{cause}: x", host="h1")
    assert causes(reader) == {(cause, None)}


def test_a_text_that_names_no_cause_is_unknown(reader, former):
    former.move(SliceState.FREE, SliceState.QUARANTINED, "set by hand", host="h1")
    assert causes(reader) == {(Cause.UNKNOWN, None)}


def test_a_cause_of_a_later_release_is_unknown(ledger, reader):
    ledger.slices.quarantine(POOL, [0, 1], Cause.SANITIZE_FAILED, "EIO")
    later = text("UPDATE slices SET cause = 'melted', reason = 'it melted' WHERE slice_index < 2")
    ledger.database.write(lambda session: session.execute(later))
    assert causes(reader) == {(Cause.UNKNOWN, None)}


def test_what_this_release_set_aside_and_it_set_aside_again_has_the_later_cause(ledger, reader):
    """It leaves the column as it was: SANITIZE_FAILED of a slice that is another's by now."""
    ledger.slices.quarantine(POOL, [0, 1], Cause.SANITIZE_FAILED, "EIO")
    former = FormerLeader(ledger.database)
    former.move(SliceState.QUARANTINED, SliceState.SANITIZING, "an operator asked for it")
    assert causes(reader) == {(None, None)}
    former.move(SliceState.SANITIZING, SliceState.FREE)
    ledger = next_leader(ledger)
    uuid = held(ledger)
    assert causes(reader) == {(None, None)}
    former = FormerLeader(ledger.database)
    former.move(SliceState.ONLINE, SliceState.QUARANTINED, "agent_down: h1 is silent", "h1", uuid)
    assert causes(reader) == {(Cause.AGENT_DOWN, None)}
    assert next_leader(ledger).slices.reinstate(uuid) == 2, "it goes back, as the former release would have had it"
    assert causes(reader) == {(None, None)}


def test_another_failure_that_it_found_is_that_one(ledger, reader):
    uuid = held(ledger)
    ledger.failures.fail_allocation(uuid, 1, "pool0: its device does not answer", notify=False)
    assert causes(reader) == {(Cause.DEVICE_FAILED, 1)}
    former = FormerLeader(ledger.database)
    former.move(SliceState.QUARANTINED, SliceState.QUARANTINED, FAILED.format(3), "h1", uuid)
    assert causes(reader) == {(Cause.DEVICE_FAILED, 3)}
    next_leader(ledger).slices.release("op-2", uuid, "h1")
    assert causes(reader) == {(Cause.DEVICE_FAILED, 3)}, "it stays aside without an owner"


def test_the_column_is_believed_where_the_reason_names_no_cause(ledger, reader):
    """As the next release may write it."""
    ledger.slices.quarantine(POOL, [0, 1], Cause.SANITIZE_FAILED, "EIO")
    later = text("UPDATE slices SET reason = 'EIO' WHERE slice_index < 2")
    ledger.database.write(lambda session: session.execute(later))
    assert causes(reader) == {(Cause.SANITIZE_FAILED, None)}


def test_a_follower_of_this_release_replays_its_moves(ledger, former):
    database = ledger.database
    last = database.read(load)
    former.move(SliceState.FREE, SliceState.QUARANTINED, FAILED.format(1), "h1")
    view = database.read(lambda session: follow(session, last)).view
    assert {(aged.item.cause, aged.item.failure) for aged in view.slices[:2]} == {(Cause.DEVICE_FAILED, 1)}
    assert differences(view, database.read(load).view) == []


def test_it_understands_what_this_release_sets_aside(ledger, reader):
    """By the reason, in the rows and in the journal, whose moves have all that it reads."""
    uuid = held(ledger)
    ledger.slices.quarantine(POOL, [2], Cause.SANITIZE_FAILED, "EIO")
    ledger.slices.quarantine_allocation(uuid, Cause.AGENT_DOWN, "h1 is silent")
    ledger.failures.fail_allocation(uuid, 1, "pool0: its device does not answer", notify=False)
    reasons = [item.reason for item in reader.slices(POOL)]
    assert reasons == [FAILED.format(1), FAILED.format(1), "sanitize_failed: EIO", ""]
    rows = ledger.database.read(lambda session: journal.after(session, 0, 1000))
    moves = [move for row in rows for move in row.effect[MOVES]]
    assert all(set(move) >= MOVE for move in moves)
    aside = [move for move in moves if move["to"] == "quarantined"]
    assert len(aside) == 3
    assert all(move["reason"].startswith(move["cause"]) for move in aside)
    assert all(move["cause"] is None for move in moves if move not in aside)


def test_it_adds_slices_without_a_cause(ledger, reader):
    columns = {column.name for column in SliceRow.__table__.columns} - {"cause", "failure"}
    values = {"pool_uuid": POOL, "slice_index": 9, "state": "free", "epoch": 0, "reason": "", "changed_at": 0.0}
    values |= {"host": None, "allocation_uuid": None}
    assert set(values) == columns
    names = ", ".join(sorted(columns))
    marks = ", ".join(f":{name}" for name in sorted(columns))
    statement = text(f"INSERT INTO slices ({names}) VALUES ({marks})")
    ledger.database.write(lambda session: session.execute(statement, values))
    assert reader.slice(POOL, 9).cause is None


def lent(ledger):
    test_buffers.lend(ledger)
    return ledger.loans.borrow("op-1", test_buffers.request(2), test_buffers.BUFFER)["allocation_uuid"]


def buffer_causes(ledger):
    records = SqlReader(ledger.database).buffers("h1", state=None, host=None, limit=2, marker=None)
    found = [item.cause for item in ledger.buffers.find("h1")][:2]
    assert [item.cause for item in records] == found
    return set(found)


def test_buffers_that_it_sets_aside_have_their_cause(ledger):
    uuid = lent(ledger)
    former = FormerLeader(ledger.database)
    former.execute(BUFFERS, state="quarantined", epoch=former.epoch, reason="host_fenced: it burns")
    assert buffer_causes(ledger) == {Cause.HOST_FENCED}
    assert next_leader(ledger).buffers.free_revoked("h1", test_buffers.LIFE, [0, 1]) == 2
    assert buffer_causes(ledger) == {None}
    assert uuid not in {item.uuid for item in ledger.loans.allocations()}


def test_buffers_of_a_fenced_borrower_that_their_lender_lost_are_not_free(ledger):
    """It notes that with a reason alone, not even under its epoch; nobody may get memory that is gone."""
    uuid = lent(ledger)
    ledger.failures.fence_host("h2", "it burns", force=True)
    assert buffer_causes(ledger) == {Cause.HOST_FENCED}
    former = FormerLeader(ledger.database)
    former.execute(MARK, reason="lender_lost: its lender does not have this memory any more")
    assert buffer_causes(ledger) == {Cause.LENDER_LOST}
    after = next_leader(ledger)
    assert after.buffers.free_revoked("h1", test_buffers.LIFE, [0, 1]) == 0
    assert after.loans.give_back("op-2", uuid, "h2") == []
    assert len(after.buffers.find("h1")) == 2, "forgotten"


def test_it_understands_why_buffers_are_aside(ledger):
    lent(ledger)
    ledger.buffers.delegate(Lender("h1", "", LenderKind.ACTIVE, test_buffers.BUFFER), 2, {})
    assert {item.reason.partition(":")[0] for item in ledger.buffers.find("h1")} == {"lender_lost"}
    rows = ledger.database.read(lambda session: journal.after(session, 0, 1000))
    [move] = [move for row in rows if row.kind == "lender_lost" for move in row.effect[BUFFER_MOVES]]
    assert (move["cause"], move["reason"].partition(":")[0]) == ("lender_lost", "lender_lost")


def test_what_it_reinstated_is_followed(ledger):
    """It called that kind of operation `reclaim`."""
    uuid = held(ledger)
    ledger.slices.begin_release(uuid, "nobody claims it")
    last = ledger.database.read(replica.load)
    FormerLeader(ledger.database).move(
        SliceState.RELEASING, SliceState.ONLINE, host="h1", allocation=uuid, kind="reclaim"
    )
    followed = ledger.database.read(lambda session: replica.follow(session, last))
    assert followed.view.ledger() == ledger.database.read(replica.load).view.ledger()
