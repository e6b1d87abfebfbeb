"""The ledger's writer on all three databases."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate
from uuid import uuid4

import pytest
from sqlalchemy import event, select

from pondstack.db.connection.clock import now_seconds
from pondstack.db.store import SQL
from pondstack.domain import errors
from pondstack.domain.causes import Cause
from pondstack.domain.requests import AssignRequest
from pondstack.domain.sizing import Split
from pondstack.ledger.hosts import Receipt
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.store import RememberedSplit
from pondstack.ledger.transactions import AT_A_TIME
from tests.fixtures import lead
from tests.fixtures.ledgers import POOL, report


def request(slices=2, host="h1", **values):
    return AssignRequest(str(uuid4()), host, POOL, slices * 1024, guest_mib=4096, **values)


def states(reader):
    return [item.state for item in reader.slices(POOL)]


def test_round_trip(ledger, reader):
    grant = ledger.slices.assign("op-1", request())
    assert states(reader) == ["assigning", "assigning", "free", "free"]
    uuid = grant["allocation_uuid"]
    ledger.slices.acknowledge("op-1", uuid, "h1")
    assert reader.allocation(uuid).state == "online"
    assert reader.slices(POOL, host="h1")[0].consumer_uuid == reader.allocation(uuid).consumer_uuid
    assert reader.host("h1").pool_mib == 2048
    assert ledger.slices.release("op-2", uuid, "h1") == POOL
    assert states(reader) == ["sanitizing", "sanitizing", "free", "free"]
    assert reader.allocations() == []
    assert ledger.slices.sanitized(POOL, [0, 1]) == 2
    assert reader.pool("pool0").slices["free"] == 4


def test_the_same_operation_gets_the_same_grant(ledger, reader):
    wanted = request()
    first = ledger.slices.assign("op-1", wanted)
    assert ledger.slices.assign("op-1", wanted) == first
    assert reader.pool(POOL).slices["assigning"] == 2
    with pytest.raises(errors.OperationMismatch):
        ledger.slices.assign("op-1", replace(wanted, pool_mib=1024))


def test_an_operation_whose_allocation_is_gone_gives_nothing(ledger):
    wanted = request()
    uuid = ledger.slices.assign("op-1", wanted)["allocation_uuid"]
    ledger.slices.release("op-2", uuid, "h1")
    with pytest.raises(errors.Conflict, match="released already"):
        ledger.slices.assign("op-1", wanted)


def test_late_and_duplicate_messages_change_nothing(ledger, reader):
    uuid = ledger.slices.assign("op-1", request())["allocation_uuid"]
    ledger.slices.acknowledge("op-1", uuid, "h1")
    ledger.slices.acknowledge("op-1", uuid, "h1")
    ledger.slices.acknowledge("op-9", uuid, "h1")
    ledger.slices.release("op-2", uuid, "h1")
    ledger.slices.sanitized(POOL, [0, 1])
    other = ledger.slices.assign("op-3", request(host="h2"))["allocation_uuid"]
    assert ledger.slices.release("op-2", uuid, "h1") == POOL
    assert ledger.slices.release("op-4", uuid, "h1") is None
    with pytest.raises(errors.NotFound):
        ledger.slices.acknowledge("op-5", uuid, "h1")
    assert reader.allocation(other).state == "assigning"


def test_the_release_of_what_is_gone_is_in_the_journal_and_takes_nothing(ledger, reader):
    uuid = ledger.slices.assign("op-1", request())["allocation_uuid"]
    with pytest.raises(errors.Conflict, match="does not report"):
        ledger.slices.note_release("op-2", uuid, "h1")
    with pytest.raises(errors.Conflict, match="belongs to host h1"):
        ledger.slices.note_release("op-2", uuid, "h2")
    assert reader.allocation(uuid).state == "assigning"
    ledger.slices.release("op-3", uuid, "h1")
    for _ in range(2):
        ledger.slices.note_release("op-2", uuid, "h1")
    with pytest.raises(errors.OperationMismatch):
        ledger.slices.note_release("op-2", uuid, "h2")


def test_a_host_cannot_speak_for_another(ledger):
    uuid = ledger.slices.assign("op-1", request())["allocation_uuid"]
    with pytest.raises(errors.Conflict, match="belongs to host h1"):
        ledger.slices.release("op-2", uuid, "h2")
    with pytest.raises(errors.Conflict, match="belongs to host h1"):
        ledger.slices.acknowledge("op-1", uuid, "h2")


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"pool_mib": 5 * 1024}, errors.PoolShortage, "pool pool0: 5 slices are wanted and 4 are free"),
        ({"pool_mib": 1000}, errors.NotAligned, "1000 MiB"),
        ({"pool_mib": 0}, errors.NotAligned, "0 MiB"),
        ({"shape": (1,)}, errors.NotAligned, "shape"),
        ({"pool_uuid": "nowhere"}, errors.NotFound, "no pool nowhere"),
        ({"host": "h3"}, errors.HostUnusable, "h3 is unknown"),
    ],
)
def test_refuses(ledger, reader, change, error, text):
    with pytest.raises(error, match=text):
        ledger.slices.assign("op-1", replace(request(), **change))
    assert reader.pool(POOL).slices["free"] == 4


def test_refuses_a_disabled_host_and_one_that_does_not_reach_the_pool(ledger):
    generation = ledger.hosts.set("h1", False, "maintenance", 0)
    assert generation == 1
    with pytest.raises(errors.HostUnusable, match="maintenance"):
        ledger.slices.assign("op-1", request())
    with pytest.raises(errors.GenerationConflict):
        ledger.hosts.set("h1", True, "", 0)
    ledger.hosts.set("h1", True, "", 1)
    ledger.hosts.heartbeat(report("h1", sequence=2, pools=[]))
    with pytest.raises(errors.HostUnusable, match="does not reach"):
        ledger.slices.assign("op-1", request())


def test_fragmented_is_told_from_short(ledger):
    for number in range(4):
        ledger.slices.assign(f"op-{number}", request(1))
    ledger.slices.release("r-0", ledger.slices.assign("op-0", _same(ledger, 0))["allocation_uuid"], "h1")
    ledger.slices.release("r-2", ledger.slices.assign("op-2", _same(ledger, 2))["allocation_uuid"], "h1")
    ledger.slices.sanitized(POOL, range(4))
    with pytest.raises(errors.PoolFragmented):
        ledger.slices.assign("op-9", request(2, shape=(2,)))
    assert ledger.slices.assign("op-9b", request(2))["extents"] == [{"start": 0, "count": 1}, {"start": 2, "count": 1}]


def _same(ledger, number):
    """The request of an operation as the ledger has it."""
    uuid = ledger.database.read(lambda session: _consumer(session, f"op-{number}"))
    return replace(request(1), consumer_uuid=uuid)


def _consumer(session, operation_id):
    from pondstack.db.models import AllocationRow

    return session.execute(
        select(AllocationRow.consumer_uuid).where(AllocationRow.operation_id == operation_id)
    ).scalar_one()


def test_a_late_report_is_dropped_unless_the_host_was_silent(ledger, reader):
    assert ledger.hosts.heartbeat(report("h1", sequence=7)) == Receipt(accepted=True)
    assert not ledger.hosts.heartbeat(report("h1", sequence=6, pools=[])).accepted
    assert reader.host("h1").pools == (POOL,)
    forgetful = Ledger(ledger.database, ledger.epoch, down_seconds=-1, store=SQL)
    assert forgetful.hosts.heartbeat(report("h1", sequence=1, pools=[])) == Receipt(accepted=True, reach_changed=True)


def test_quarantine_keeps_the_cause_and_ends_in_sanitising(ledger, reader):
    uuid = ledger.slices.assign("op-1", request())["allocation_uuid"]
    assert ledger.slices.begin_release(uuid, "") == 2
    with pytest.raises(errors.IllegalTransition):
        ledger.slices.acknowledge("op-1", uuid, "h1")
    assert ledger.slices.quarantine_allocation(uuid, Cause.AGENT_DOWN, "h1 is silent") == 2
    assert {(i.host, i.allocation_uuid, i.reason) for i in reader.slices(POOL, state="quarantined")} == {
        ("h1", uuid, "agent_down: h1 is silent")
    }
    assert ledger.slices.release("op-2", uuid, "h1") == POOL
    assert states(reader) == ["sanitizing", "sanitizing", "free", "free"]
    assert ledger.slices.quarantine(POOL, [1, 2], Cause.SANITIZE_FAILED, "EIO", host="h1") == 2
    assert ledger.slices.audit(POOL, [1, 2, 3], "") == 2
    assert states(reader) == ["sanitizing", "sanitizing", "sanitizing", "free"]


def test_claims_keep_their_first_moment(ledger):
    uuid = ledger.slices.assign("op-1", request())["allocation_uuid"]
    ledger.slices.mark_claims([], [uuid])
    first = _unclaimed_since(ledger, uuid)
    ledger.slices.mark_claims([], [uuid])
    assert _unclaimed_since(ledger, uuid) == first
    ledger.slices.mark_claims([uuid], [])
    assert _unclaimed_since(ledger, uuid) is None


def _unclaimed_since(ledger, uuid):
    from pondstack.db.models import AllocationRow

    return ledger.database.read(lambda session: session.get(AllocationRow, uuid).unclaimed_since)


def test_a_deposed_writer_cannot_write(ledger, reader):
    newer = Ledger(ledger.database, lead(ledger.database, "newer"), store=SQL)
    assert newer.epoch == ledger.epoch + 1
    for write in (
        lambda: ledger.slices.assign("op-1", request()),
        lambda: ledger.hosts.heartbeat(report("h1", sequence=9)),
        lambda: ledger.slices.sanitized(POOL, [0]),
    ):
        with pytest.raises(errors.NotLeader):
            write()
    assert reader.pool(POOL).slices["free"] == 4
    assert reader.leader().holder == "newer"
    newer.slices.assign("op-1", request())


def test_of_two_writers_for_the_last_slices_exactly_one_wins(ledger, reader):
    for turn in range(5):
        outcomes = []
        barrier = threading.Barrier(2)

        def contend(number, turn=turn, outcomes=outcomes, barrier=barrier):
            wanted = request(3, host=f"h{number}")
            barrier.wait(10)
            try:
                outcomes.append(ledger.slices.assign(f"op-{turn}-{number}", wanted)["allocation_uuid"])
            except errors.PoolShortage:
                outcomes.append(None)

        _run([threading.Thread(target=contend, args=(number,)) for number in (1, 2)])
        assert len([item for item in outcomes if item]) == 1, outcomes
        winner = reader.allocations()[0]
        assert reader.pool(POOL).slices["assigning"] == 3
        ledger.slices.release(f"r-{turn}", winner.uuid, winner.host)
        ledger.slices.sanitized(POOL, range(4))


def _run(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_the_same_operation_at_the_same_time_takes_slices_once(ledger, reader):
    wanted = request(1)
    grants = []
    _run([threading.Thread(target=lambda: grants.append(ledger.slices.assign("op-1", wanted))) for _ in range(4)])
    assert len(grants) == 4
    assert grants.count(grants[0]) == 4
    assert reader.pool(POOL).slices["assigning"] == 1


def test_registering_a_pool_again(ledger, reader):
    again = {"uuid": POOL, "serial": "S1", "driver": "fake", "address": {}, "slice_mib": 1024}
    ledger.pools.register(name="renamed", slices_total=6, **again)
    assert (reader.pool("renamed").slices["free"], len(reader.slices(POOL))) == (6, 6)
    with pytest.raises(errors.Conflict, match="retire the pool"):
        ledger.pools.register(name="renamed", slices_total=5, **again)
    with pytest.raises(errors.Conflict, match="belongs to another device"):
        ledger.pools.register(name="renamed", slices_total=5, **{**again, "uuid": str(uuid4()), "serial": "S2"})


def test_old_operations_are_forgotten_but_for_the_newest(ledger):
    wanted = request(1)
    ledger.slices.assign("op-1", wanted)
    ledger.slices.assign("op-2", request(1))
    ledger.remember_splits([RememberedSplit("i-1", "flavor", Split(1, 2, "static", 1.0, "because"))])
    assert ledger.prune(3600) == 0
    assert ledger.prune(-1) == 2  # the pool's registration is an operation too
    with pytest.raises(errors.Conflict):
        ledger.slices.assign("op-2", wanted)


def test_the_clock_is_in_seconds_and_moves_within_a_transaction(database):
    first, second = database.read(
        lambda session: [session.execute(select(now_seconds())).scalar_one() for _ in range(2)]
    )
    assert isinstance(first, float)
    assert 0 <= second - first < 5
    assert abs(first - time.time()) < 60


def test_one_writer_has_few_transactions_at_a_time(ledger, database) -> None:
    """A paused leader holds the leadership row while its server lets a few transactions idle, not one a request."""
    steps: list[int] = []
    event.listen(database.engine, "begin", lambda _connection: steps.append(1))
    event.listen(database.engine, "commit", lambda _connection: steps.append(-1))
    # The server ends the transactions of a test that stood still: those begin once more.
    event.listen(database.engine, "rollback", lambda _connection: steps.append(-1))
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(ledger.hosts.heartbeat, report(f"host{number}")) for number in range(24)]:
            done.result()
    assert steps.count(1) == steps.count(-1) >= 24
    assert max(accumulate(steps)) <= AT_A_TIME
