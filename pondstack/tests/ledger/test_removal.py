"""Hosts and pools leave the ledger whole, and only when nothing of them is left."""

import pytest
from sqlalchemy import text

from pondstack.db.read.replica import follow, load
from pondstack.domain.causes import Cause
from pondstack.domain.errors import HostUnusable, NotEmpty, NotFound
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.requests import AssignRequest, BorrowRequest
from pondstack.ledger.moves import OutOfStep
from tests.fixtures.escrow import fill_escrow
from tests.fixtures.ledgers import POOL, report

CONSUMER = "22222222-2222-4222-8222-222222222222"
LIFE = "33333333-3333-4333-8333-333333333333"
TABLES = ("hosts", "host_pools", "slices", "allocations", "lenders", "buffers", "remote_allocations")
SILENCE = text("UPDATE hosts SET last_heartbeat = last_heartbeat - 86400 WHERE name = :name")


def quiet(database, *hosts):
    """Let hosts be silent for a day."""
    for host in hosts:
        database.write(lambda session, name=host: session.execute(SILENCE, {"name": name}))


def rows_about(database, value):
    """Return the tables with a row that has this value somewhere."""

    def look(session):
        rows = {name: session.execute(text(f"SELECT * FROM {name}")).all() for name in TABLES}
        return [name for name, found in rows.items() if any(value in row for row in found)]

    return database.read(look)


def assign(ledger, host="h1"):
    request = AssignRequest(consumer_uuid=CONSUMER, host=host, pool_uuid=POOL, pool_mib=2048, guest_mib=4096)
    return ledger.slices.assign("op-assign", request)["allocation_uuid"]


def lend(ledger, host="h1", sequence=1):
    lender = Lender(host, LIFE, LenderKind.ACTIVE, 64)
    ledger.buffers.delegate(lender, sequence, {0: 0, 1: 64})


def test_a_host_leaves_no_row(ledger, database):
    lend(ledger)
    ledger.buffers.delegate(Lender("h1", "", LenderKind.ACTIVE, 64), 2, {})
    quiet(database, "h1")
    ledger.removal.remove_host("h1", "op1")
    assert rows_about(database, "h1") == []
    with pytest.raises(HostUnusable, match="unknown"):
        assign(ledger)


def test_a_removal_happens_once(ledger, database, reader):
    quiet(database, "h1")
    assert not ledger.removal.was_done("op1")
    ledger.removal.remove_host("h1", "op1")
    ledger.hosts.heartbeat(report("h1"))
    quiet(database, "h1")
    ledger.removal.remove_host("h1", "op1")
    assert ledger.removal.was_done("op1")
    assert {host.name for host in reader.hosts()} == {"h1", "h2"}
    with pytest.raises(NotFound):
        ledger.removal.remove_host("h3", "op2")


def test_a_host_whose_agent_reports_stays(ledger, reader):
    with pytest.raises(NotEmpty, match=r"its agent, which reported .* s ago"):
        ledger.removal.remove_host("h1", "op1")
    assert reader.host("h1").up


def test_a_host_with_slices_stays_with_the_list_of_them(ledger, database, reader):
    uuid = assign(ledger)
    ledger.slices.acknowledge("op-ack", uuid, "h1")
    ledger.slices.quarantine(POOL, [3], Cause.UNKNOWN_ATTACHMENT, "it has it", host="h1", allocation_uuid=LIFE)
    quiet(database, "h1")
    with pytest.raises(NotEmpty, match=r"3 slices \(2 online, 1 quarantined\)"):
        ledger.removal.check_host("h1")
    with pytest.raises(NotEmpty, match=r"3 slices"):
        ledger.removal.remove_host("h1", "op1")
    assert reader.host("h1").pool_mib == 2048


def test_a_host_that_lends_or_borrows_stays(ledger, database):
    lend(ledger)
    request = BorrowRequest(consumer_uuid=CONSUMER, host="h2", remote_mib=64, guaranteed=True)
    ledger.loans.borrow("op-borrow", request, 64)
    quiet(database, "h1", "h2")
    with pytest.raises(NotEmpty, match=r"2 buffers that it lends \(1 free, 1 assigning\)"):
        ledger.removal.remove_host("h1", "op1")
    with pytest.raises(NotEmpty, match=r"1 buffers that it borrows \(1 assigning\)"):
        ledger.removal.remove_host("h2", "op2")


def test_a_host_that_may_have_a_key_of_a_sleeping_lender_stays(ledger, database):
    ledger.buffers.delegate(Lender("h1", LIFE, LenderKind.ZOMBIE, 64), 1, {0: 0, 1: 64})
    ledger.hosts.heartbeat(report("h3", borrowed={"links": [["h1", LIFE]]}))
    fill_escrow(ledger, "h1", "h3")
    request = BorrowRequest(consumer_uuid=CONSUMER, host="h3", remote_mib=64, guaranteed=True)
    uuid = ledger.loans.borrow("op-borrow", request, 64)["allocation_uuid"]
    ledger.loans.give_back("op-back", uuid, "h3")
    quiet(database, "h3")
    with pytest.raises(NotEmpty, match=r"1 buffers that are promised to it"):
        ledger.removal.remove_host("h3", "op3")


def test_a_host_that_comes_back_starts_clean(ledger, database, reader):
    ledger.hosts.heartbeat(report("h1", sequence=900))
    quiet(database, "h1")
    ledger.failures.fence_host("h1", "it burned", force=True)
    lend(ledger, "h2", sequence=900)
    ledger.buffers.delegate(Lender("h2", "", LenderKind.ACTIVE, 64), 901, {})
    quiet(database, "h2")
    for name in ("h1", "h2"):
        ledger.removal.remove_host(name, f"op-{name}")
        assert ledger.hosts.heartbeat(report(name, sequence=1)).accepted
    host = reader.host("h1")
    assert (host.enabled, host.fenced, host.generation, host.pools) == (True, False, 0, (POOL,))
    assign(ledger)
    lend(ledger, "h2", sequence=1)
    assert len(ledger.buffers.find("h2")) == 2


def test_the_last_word_of_a_removed_lender_leaves_no_trace(ledger, database):
    quiet(database, "h1")
    ledger.removal.remove_host("h1", "op1")
    ledger.buffers.delegate(Lender("h1", "", LenderKind.ACTIVE, 64), 7, {})
    assert rows_about(database, "h1") == []


def test_a_pool_leaves_no_row(ledger, database, reader):
    ledger.slices.quarantine(POOL, [3], Cause.DEVICE_FAILED, "it is dead", failure=1)
    ledger.removal.remove_pool(POOL, "op1")
    ledger.removal.remove_pool(POOL, "op1")
    assert rows_about(database, POOL) == []
    assert reader.pools() == []
    assert reader.rack().slices == ()
    with pytest.raises(NotFound):
        ledger.removal.remove_pool(POOL, "op2")


@pytest.mark.parametrize("state", ["assigning", "online", "releasing", "sanitizing", "quarantined"])
def test_a_pool_with_slices_that_are_somebodys_stays(ledger, reader, state):
    uuid = assign(ledger)
    if state != "assigning":
        ledger.slices.acknowledge("op-ack", uuid, "h1")
    if state == "releasing":
        ledger.slices.begin_release(uuid, "nobody claims it")
    if state == "sanitizing":
        ledger.slices.release("op-release", uuid, "h1")
    if state == "quarantined":
        ledger.slices.quarantine_allocation(uuid, Cause.AGENT_DOWN, "it is silent")
    with pytest.raises(NotEmpty, match=rf"pool pool0 .* 2 slices \(2 {state}\)"):
        ledger.removal.remove_pool(POOL, "op1")
    assert reader.pool("pool0").slices["free"] == 2


def test_a_pool_comes_back_with_all_its_slices_free(ledger, reader):
    ledger.removal.remove_pool(POOL, "op1")
    ledger.pools.register(
        uuid=POOL, name="pool0", serial="S1", driver="fake", address={"path": "/x"}, slice_mib=512, slices_total=3
    )
    pool = reader.pool("pool0")
    assert (pool.slice_mib, pool.slices["free"], pool.hosts) == (512, 3, ())


@pytest.mark.parametrize(("slice_mib", "dirty"), [(1024, [3]), (512, [0, 1, 2, 3])])
def test_what_was_aside_when_a_pool_was_removed_is_zeroed_if_it_comes_back(ledger, reader, slice_mib, dirty):
    """However long it was away: what a guest wrote may still be in it. Nobody knows where, with another slice size."""
    ledger.slices.quarantine(POOL, [3], Cause.DEVICE_FAILED, "it is dead", failure=1)
    ledger.removal.remove_pool(POOL, "op1")
    ledger.hosts.set("h1", False, "the newest operation is never pruned", 0)
    ledger.prune(-3600.0)
    ledger.pools.register(
        uuid=POOL, name="p", serial="S1", driver="fake", address={}, slice_mib=slice_mib, slices_total=4
    )
    assert [item.index for item in reader.slices(POOL) if item.state == "sanitizing"] == dirty
    ledger.slices.sanitized(POOL, dirty)
    ledger.removal.remove_pool(POOL, "op2")
    ledger.pools.register(
        uuid=POOL, name="p", serial="S1", driver="fake", address={}, slice_mib=slice_mib, slices_total=4
    )
    assert reader.pool(POOL).slices["free"] == 4


def test_a_stand_by_follows_a_removal(ledger, database):
    before = database.read(load)
    ledger.removal.remove_pool(POOL, "op1")
    removed = database.read(lambda session: follow(session, before))
    assert (removed.view.pools, removed.view.slices) == ({}, ())
    ledger.pools.register(uuid=POOL, name="p", serial="S1", driver="fake", address={}, slice_mib=1024, slices_total=4)
    with pytest.raises(OutOfStep):
        # What followed the removal may have been pruned: the removal itself never is.
        database.read(lambda session: follow(session, removed))
    assert len(database.read(load).view.slices) == 4
