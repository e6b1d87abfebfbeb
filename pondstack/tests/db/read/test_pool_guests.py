"""VMs with pool memory are read in bulk, with what their own host saw last of their own nodes."""

from uuid import uuid4

import pytest
from sqlalchemy import update

from pondstack.db.models import AllocationRow
from pondstack.db.read.pool_guests import pool_guests
from pondstack.db.store.telemetry import Retention, Telemetry
from pondstack.domain.purpose import Purpose
from pondstack.domain.requests import AssignRequest
from pondstack.domain.sizing import Split
from pondstack.ledger.store import RememberedSplit
from pondstack.rpc.wire import Sample
from tests.fixtures.ledgers import POOL

VM = "0635cccd-1e78-5473-b66a-bacffc433357"
FRESH = 900.0
SPLIT = Split(6144, 2048, "untouched", 0.98, "", "um-1", {"pdm": 3})


@pytest.fixture
def look(database):
    """Take a look at nodes' untouched memory, so many seconds ago."""
    telemetry = Telemetry(database, lambda: Retention(7200, 300, 7200, 900))

    def write(nodes, age=60.0, host="h1"):
        telemetry.write(host, [Sample(VM, "untouched_mib", *_value(node, mib, age)) for node, mib in nodes.items()])

    return write


def _value(node, mib, age):
    return (node, age, 0, None, None, None, "no look") if mib is None else (node, age, 1, mib, mib, mib)


def assign(ledger, host="h1", **values):
    operation = str(uuid4())
    request = AssignRequest(VM, host, POOL, 2048, guest_mib=8192, project_id="p", **values)
    uuid = ledger.slices.assign(operation, request)["allocation_uuid"]
    ledger.slices.acknowledge(operation, uuid, host)
    return uuid


def guests(database, limit_mib=100.0):
    return database.read(lambda session: pool_guests(session, lambda _pool_mib: limit_mib, FRESH))


def test_what_is_known_of_one(database, ledger, look):
    uuid = assign(ledger)
    ledger.remember_splits([RememberedSplit(VM, "f", SPLIT, 0.0)])
    look({None: 2000.0, 0: 500.0, 1: 1500.0})
    (found,) = guests(database)
    assert (found.allocation_uuid, found.host, found.memory_mib, found.pool_mib) == (uuid, "h1", 8192, 2048)
    assert (found.touched_mib, found.memory_untouched_mib) == (548.0, 2000.0)
    assert (found.split_source, found.model_version, found.pdm_percent) == ("untouched", "um-1", 3.0)
    assert (found.source, found.migrating) == ("measured", False)


def test_without_split_or_look_it_is_not_observed(database, ledger):
    assign(ledger)
    (found,) = guests(database)
    assert (found.untouched_mib, found.split_source, found.pdm_percent) == (None, "", None)


@pytest.mark.parametrize("nodes", [{None: 2000.0, 0: 500.0}, {1: None}])
def test_a_look_at_other_nodes_or_none_is_no_look(database, ledger, look, nodes):
    assign(ledger)
    look(nodes)
    assert guests(database)[0].untouched_mib is None


def test_an_old_look_does_not_count(database, ledger, look):
    assign(ledger)
    look({1: 1500.0}, age=FRESH + 60)
    assert guests(database)[0].untouched_mib is None


def test_the_newest_look_counts_where_the_labels_leave_it_open(database, ledger, look):
    """It was started anew: what it had touched before is free again."""
    assign(ledger)
    look({1: 0.0}, age=600.0)
    look({1: 2040.0}, age=30.0)
    assert guests(database)[0].untouched_mib == 2040.0


def test_of_another_host_a_look_says_nothing(database, ledger, look):
    assign(ledger)
    look({1: 0.0}, host="h2")
    assert guests(database)[0].untouched_mib is None


def test_below_the_limit_the_labels_are_enough(database, ledger, look):
    assign(ledger)
    look({1: 1999.0}, host="h2")
    assert guests(database)[0].untouched_mib == 1999.0


def test_one_that_moves_has_two(database, ledger, look):
    assign(ledger)
    assign(ledger, "h2")
    look({1: 1500.0})
    found = {item.host: item for item in guests(database)}
    assert found["h1"].migrating
    assert found["h2"].migrating
    assert (found["h1"].untouched_mib, found["h2"].untouched_mib) == (1500.0, None)


def test_slices_of_a_host_itself_are_no_guest_s(database, ledger):
    assign(ledger)
    database.write(lambda session: session.execute(update(AllocationRow).values(purpose=Purpose.BASE)))
    assert guests(database) == []
