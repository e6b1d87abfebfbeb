"""The way back of a release that had begun, on all three databases: what it takes, and what it must never take."""

import pytest

from pondstack.db.store import SQL
from pondstack.domain.causes import Cause
from pondstack.domain.errors import NotLeader
from pondstack.ledger.ledger import Ledger
from pondstack.tests.ledger.test_ledger import request, states
from tests.fixtures import lead
from tests.fixtures.ledgers import POOL, report

SILENT = (Cause.AGENT_DOWN, "h1 is silent")


@pytest.fixture
def held(ledger) -> str:
    """An allocation of two slices, ONLINE on h1."""
    uuid = ledger.slices.assign("op-1", request())["allocation_uuid"]
    ledger.slices.acknowledge("op-1", uuid, "h1")
    return uuid


def test_a_release_that_began_is_taken_back(ledger, reader, held):
    ledger.slices.begin_release(held, "nobody claims it")
    assert ledger.slices.reinstate(held) == 2
    assert states(reader) == ["online", "online", "free", "free"]
    item = reader.slices(POOL)[0]
    assert (item.host, item.allocation_uuid, item.reason) == ("h1", held, "")


def test_what_was_set_aside_for_its_hosts_silence_comes_back(ledger, reader, held):
    ledger.slices.begin_release(held, "nobody claims it")
    ledger.slices.quarantine_allocation(held, *SILENT)
    assert ledger.slices.reinstate(held) == 2
    assert states(reader) == ["online", "online", "free", "free"]
    assert reader.slices(POOL, host="h1")[0].reason == ""


@pytest.mark.parametrize("cause", [Cause.AGENT_LOST, Cause.PERMISSION_DIFFERS, Cause.DEVICE_FAILED, Cause.UNKNOWN])
def test_what_was_set_aside_for_another_cause_stays(ledger, reader, held, cause):
    ledger.slices.quarantine_allocation(held, cause, "agent_down: a text is for people")
    assert ledger.slices.reinstate(held) == 0
    assert states(reader)[:2] == ["quarantined"] * 2


def test_all_of_it_comes_back_or_nothing(ledger, reader, held):
    ledger.slices.quarantine_allocation(held, *SILENT)
    ledger.slices.audit(POOL, [0], "for the test")
    ledger.slices.quarantine(POOL, [0], Cause.PERMISSION_LEFT, "h2", host="h1", allocation_uuid=held)
    assert ledger.slices.reinstate(held) == 0
    assert states(reader)[:2] == ["quarantined"] * 2


def test_a_release_that_its_host_confirmed_is_not_taken_back(ledger, reader, held):
    ledger.slices.begin_release(held, "nobody claims it")
    ledger.slices.release("op-2", held, "h1")
    assert ledger.slices.reinstate(held) == 0
    assert states(reader)[:2] == ["sanitizing"] * 2


def test_a_confirmation_that_comes_late_still_counts(ledger, reader, held):
    """The host had let go before it heard of the way back: nobody holds the slices, so they must not stay ONLINE."""
    ledger.slices.begin_release(held, "nobody claims it")
    ledger.slices.reinstate(held)
    assert ledger.slices.release("op-2", held, "h1") == POOL
    assert states(reader)[:2] == ["sanitizing"] * 2
    assert reader.allocations() == []
    assert ledger.slices.reinstate(held) == 0


@pytest.mark.parametrize("silent", [True, False])
def test_a_fenced_hosts_memory_stays_aside(ledger, reader, held, silent):
    """It may have been set aside before the fence, so that the reason does not tell."""
    if silent:
        ledger.slices.quarantine_allocation(held, *SILENT)
    else:
        ledger.slices.begin_release(held, "nobody claims it")
    ledger.failures.fence_host("h1", "it burns", force=True)
    assert ledger.slices.reinstate(held) == 0
    assert states(reader)[:2] == ["quarantined"] * 2


def test_what_is_online_or_unknown_needs_no_way_back(ledger, held):
    assert ledger.slices.reinstate(held) == 0
    assert ledger.slices.reinstate("none") == 0


def test_what_was_never_acknowledged_has_none(ledger, reader):
    uuid = ledger.slices.assign("op-1", request())["allocation_uuid"]
    assert ledger.slices.reinstate(uuid) == 0
    assert states(reader)[:2] == ["assigning"] * 2


def test_a_deposed_leader_takes_nothing_back(ledger, reader, held):
    ledger.slices.begin_release(held, "nobody claims it")
    Ledger(ledger.database, lead(ledger.database, "next"), store=SQL).hosts.heartbeat(report("h1", sequence=2))
    with pytest.raises(NotLeader):
        ledger.slices.reinstate(held)
    assert states(reader)[:2] == ["releasing"] * 2
