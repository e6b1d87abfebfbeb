"""A failed device and a fenced host in the ledger, on all three databases."""

import pytest
from sqlalchemy import update

from pondstack.db.models import HostRow
from pondstack.db.store import SQL
from pondstack.domain.causes import Cause
from pondstack.domain.errors import Conflict, GenerationConflict, HostUnusable, NotFound
from pondstack.ledger.ledger import Ledger
from pondstack.tests.ledger.test_ledger import request, states
from tests.fixtures import lead
from tests.fixtures.ledgers import POOL, report

FIRST = "device_failed: failure 1 of pool0"


def assign(ledger, **values):
    asked = request(**values)
    return asked, ledger.slices.assign(f"op-{asked.consumer_uuid}"[:36], asked)["allocation_uuid"]


def silence(ledger, host, seconds=60.0):
    ledger.database.write(
        lambda session: session.execute(
            update(HostRow).where(HostRow.name == host).values(last_heartbeat=HostRow.last_heartbeat - seconds)
        )
    )


def test_a_failure_sets_aside_and_is_to_be_told_once(ledger, reader):
    asked, uuid = assign(ledger, project_id="p", user_id="u")
    assert ledger.failures.fail_allocation(uuid, 1, "pool0", notify=True) == 2
    assert states(reader) == ["quarantined", "quarantined", "free", "free"]
    assert {(item.cause, item.reason) for item in reader.slices(POOL, host="h1")} == {(Cause.DEVICE_FAILED, FIRST)}
    assert {aged.item.failure for aged in reader.rack().slices} == {1, None}
    (event,) = ledger.failures.pending()
    assert (event.instance_uuid, event.project_id, event.user_id) == (asked.consumer_uuid, "p", "u")
    assert (event.allocation_uuid, event.host, event.pool_name, event.pool_mib) == (uuid, "h1", "pool0", 2048)
    ledger.failures.fail_allocation(uuid, 1, "pool0", notify=True)
    assert ledger.failures.pending() == [event]
    ledger.failures.mark_sent(event)
    ledger.failures.mark_sent(event)
    ledger.failures.fail_allocation(uuid, 1, "pool0", notify=True)
    assert ledger.failures.pending() == []


def test_what_nobody_was_told_waits_for_the_next_leader(ledger):
    _, uuid = assign(ledger)
    ledger.failures.fail_allocation(uuid, 1, "pool0", notify=True)
    later = Ledger(ledger.database, lead(ledger.database, "next"), store=SQL)
    later.failures.fail_allocation(uuid, 1, "pool0", notify=True)
    assert len(later.failures.pending()) == 1


def test_each_failure_is_told_and_each_allocation(ledger, reader):
    uuids = [assign(ledger, host=host)[1] for host in ("h1", "h2")]
    for number in (1, 3):
        for uuid in uuids:
            ledger.failures.fail_allocation(uuid, number, "pool0", notify=True)
    assert [event.allocation_uuid for event in ledger.failures.pending()] == [*uuids, *uuids]
    assert len({event.uuid for event in ledger.failures.pending()}) == 4
    failed = [aged.item for aged in reader.rack().slices if aged.item.host]
    assert {(item.cause, item.failure) for item in failed} == {(Cause.DEVICE_FAILED, 3)}


def test_what_nobody_uses_is_set_aside_and_not_told(ledger, reader):
    _, uuid = assign(ledger)
    ledger.failures.fail_allocation(uuid, 1, "pool0", notify=False)
    ledger.failures.fail_allocation("00000000-0000-4000-8000-000000000000", 1, "pool0", notify=True)
    assert ledger.failures.pending() == []
    assert reader.pool(POOL).slices["quarantined"] == 2


def test_what_was_aside_already_gets_the_reason_and_keeps_its_owner(ledger, reader):
    _, uuid = assign(ledger)
    ledger.slices.quarantine_allocation(uuid, Cause.AGENT_DOWN, "h1 is silent")
    assert ledger.failures.fail_allocation(uuid, 1, "pool0", notify=True) == 2
    item = reader.slice(POOL, 0)
    assert (item.cause, item.reason, item.host, item.allocation_uuid) == (Cause.DEVICE_FAILED, FIRST, "h1", uuid)


def test_a_release_after_a_failed_device_leaves_the_slices_aside(ledger, reader):
    _, uuid = assign(ledger)
    ledger.failures.fail_allocation(uuid, 1, "pool0", notify=True)
    assert ledger.slices.release("op-2", uuid, "h1") == POOL
    assert states(reader) == ["quarantined", "quarantined", "free", "free"]
    item = reader.slice(POOL, 0)
    assert (item.cause, item.reason, item.host, item.allocation_uuid) == (Cause.DEVICE_FAILED, FIRST, None, None)
    assert reader.allocations() == []
    assert ledger.slices.audit(POOL, [0, 1], "an operator asked for it") == 2
    assert {(aged.item.cause, aged.item.failure) for aged in reader.rack().slices} == {(None, None)}


def test_a_repeated_assignment_does_not_get_into_what_was_set_aside(ledger):
    asked = request()
    uuid = ledger.slices.assign("op-1", asked)["allocation_uuid"]
    ledger.slices.quarantine_allocation(uuid, Cause.HOST_FENCED, "it burns")
    with pytest.raises(Conflict, match="quarantined since"):
        ledger.slices.assign("op-1", asked)


def test_a_fenced_host_owns_nothing_and_gets_nothing(ledger, reader):
    assign(ledger)
    assign(ledger, slices=1, host="h2")
    silence(ledger, "h1")
    assert ledger.failures.fence_host("h1", "it burns", force=False, operation_id="op-f") == 2
    assert ledger.failures.fence_host("h1", "it burns", force=False, operation_id="op-f") == 2
    assert states(reader) == ["quarantined", "quarantined", "assigning", "free"]
    aside = {(item.cause, item.reason) for item in reader.slices(POOL, host="h1")}
    assert aside == {(Cause.HOST_FENCED, "host_fenced: it burns")}
    assert (reader.host("h1").fenced, reader.host("h1").fenced_reason) == (True, "it burns")
    assert reader.rack().hosts["h1"].fenced == "it burns"
    assert reader.host("h1").generation == 1
    with pytest.raises(HostUnusable, match="it burns"):
        ledger.slices.assign("op-2", request(slices=1))
    assert not reader.host("h2").fenced


def test_a_host_that_lives_is_fenced_by_force_only(ledger, reader):
    with pytest.raises(Conflict, match="not dead"):
        ledger.failures.fence_host("h1", "a guess", force=False)
    assert not reader.host("h1").fenced
    ledger.failures.fence_host("h1", "its cables are cut", force=True)
    ledger.failures.fence_host("h1", "said again", force=False)
    assert reader.host("h1").fenced_reason == "said again"


def test_a_fence_that_is_repeated_and_late_fences_nobody_who_is_back(ledger, reader):
    """Under another operation id: what tells it from a new one is the host's generation."""
    known = reader.host("h1").generation
    ledger.failures.fence_host("h1", "it burns", force=True, generation=known, operation_id="op-1")
    with pytest.raises(GenerationConflict, match=rf"at generation {known + 1}, not {known}; .* nothing is done"):
        ledger.failures.fence_host("h1", "again", force=True, generation=known, operation_id="op-2")
    assert reader.host("h1").fenced_reason == "it burns"
    ledger.hosts.heartbeat(report("h1", 2))
    ledger.failures.unfence_host("h1")
    assign(ledger)
    with pytest.raises(GenerationConflict, match="fence it again with its present generation"):
        ledger.failures.fence_host("h1", "again", force=True, generation=known, operation_id="op-3")
    assert not reader.host("h1").fenced
    assert states(reader) == ["assigning", "assigning", "free", "free"]
    assert ledger.failures.fence_host("h1", "it burns", force=True, generation=known, operation_id="op-1") == 0
    assert not reader.host("h1").fenced
    ledger.failures.fence_host("h1", "it does", force=True, generation=reader.host("h1").generation)
    assert reader.host("h1").fenced


def test_a_fence_of_a_former_client_names_no_generation_and_is_the_same_request(ledger, reader):
    assert ledger.failures.fence_host("h1", "it burns", force=True, operation_id="op-1") == 0
    ledger.failures.fence_host("h1", "it burns", force=True, generation=0, operation_id="op-1")
    ledger.failures.fence_host("h1", "it burns still", force=True)
    assert (reader.host("h1").fenced_reason, reader.host("h1").generation) == ("it burns still", 2)


@pytest.mark.parametrize("verb", ["fence", "unfence"])
def test_an_unknown_host(ledger, verb):
    with pytest.raises(NotFound):
        ledger.failures.fence_host("h9", "x", force=True) if verb == "fence" else ledger.failures.unfence_host("h9")


def test_a_host_is_unfenced_once_it_reported_that_it_holds_nothing(ledger, reader):
    _, uuid = assign(ledger)
    held = {"allocation_uuid": uuid, "consumer_uuid": "c", "pool_uuid": POOL, "extents": [], "in_use": False}
    ledger.hosts.heartbeat(report("h1", 2, attached=[held]))
    ledger.failures.fence_host("h1", "x", force=True)
    with pytest.raises(Conflict, match="not reported since"):
        ledger.failures.unfence_host("h1")
    ledger.hosts.heartbeat(report("h1", 3, attached=[held]))
    with pytest.raises(Conflict, match=uuid):
        ledger.failures.unfence_host("h1")
    assert reader.host("h1").fenced
    ledger.hosts.heartbeat(report("h1", 4))
    ledger.failures.unfence_host("h1", "op-u")
    ledger.failures.unfence_host("h1", "op-u")
    ledger.failures.unfence_host("h1")
    assert not reader.host("h1").fenced
    ledger.slices.audit(POOL, range(4), "for the test")
    ledger.slices.assign("op-3", request(slices=1))
