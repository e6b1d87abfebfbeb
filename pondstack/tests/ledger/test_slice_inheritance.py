"""Slices that a guest keeps when it moves: whose they are, whoever lets go first, and whatever dies in between."""

from dataclasses import replace

import pytest

from pondstack.domain import errors
from pondstack.domain.causes import Cause
from pondstack.domain.requests import AssignRequest
from pondstack.domain.transitions import violations
from tests.fixtures.ledgers import POOL, report

GUEST = "33333333-3333-4333-8333-333333333333"
AT_H1 = AssignRequest(GUEST, "h1", POOL, 2048, guest_mib=4096)
AT_H2 = replace(AT_H1, host="h2", source="h1", shape=(2,))


def start(ledger):
    """Have the guest run on h1; returns its allocation."""
    uuid = ledger.slices.assign("op-1", AT_H1)["allocation_uuid"]
    ledger.slices.acknowledge("op-1", uuid, "h1")
    return uuid


def move(ledger, *, acknowledged=True, write_back=False):
    """Have it begin to move to h2; returns both allocations."""
    owner = start(ledger)
    answer = ledger.slices.assign("op-2", replace(AT_H2, write_back=write_back), hands_over=True)
    assert answer["handed"]
    if acknowledged:
        ledger.slices.acknowledge("op-2", answer["allocation_uuid"], "h2")
    return owner, answer["allocation_uuid"]


def owners(reader):
    """Return state and owner of the slices that are not free."""
    assert violations(reader.rack().ledger()) == []
    return [(item.state, item.host, item.allocation_uuid) for item in reader.slices(POOL) if item.state != "free"]


def heirs(reader):
    return {uuid: aged.item.heir for uuid, aged in reader.rack().allocations.items()}


def test_no_slice_is_taken_and_the_source_owns_them(ledger, reader):
    owner, heir = move(ledger)
    assert owners(reader) == [("online", "h1", owner)] * 2
    assert heirs(reader) == {owner: heir, heir: None}
    assert reader.allocation(heir).extents == reader.allocation(owner).extents
    assert reader.allocation(heir).state == "online"


def test_the_switch_is_the_owners_release(ledger, reader):
    owner, heir = move(ledger)
    assert ledger.slices.release("op-3", owner, "h1") == POOL
    assert owners(reader) == [("online", "h2", heir)] * 2, "what the guest has in them stays"
    assert heirs(reader) == {heir: None}
    assert ledger.slices.release("op-4", heir, "h2") == POOL
    assert owners(reader) == [("sanitizing", None, None)] * 2


def test_what_the_heir_has_not_acknowledged_waits_for_that(ledger, reader):
    owner, heir = move(ledger, acknowledged=False)
    ledger.slices.release("op-3", owner, "h1")
    assert owners(reader) == [("assigning", "h2", heir)] * 2
    ledger.slices.acknowledge("op-2", heir, "h2")
    assert owners(reader) == [("online", "h2", heir)] * 2


def test_a_move_that_fails_leaves_them_where_they_are(ledger, reader):
    owner, heir = move(ledger)
    ledger.slices.release("op-3", heir, "h2")
    assert (owners(reader), heirs(reader)) == ([("online", "h1", owner)] * 2, {owner: None})
    ledger.slices.release("op-4", owner, "h1")
    assert owners(reader) == [("sanitizing", None, None)] * 2, "nobody inherits them any more"


def test_a_failed_grant_takes_back_what_nobody_was_told_of(ledger, reader):
    owner, heir = move(ledger, acknowledged=False)
    ledger.slices.release("op-3", heir, "h2", unacknowledged=True)
    assert heirs(reader) == {owner: None}


def test_a_late_undo_leaves_what_is_acknowledged(ledger, reader):
    owner, heir = move(ledger)
    ledger.slices.release("op-3", heir, "h2", unacknowledged=True)
    assert heirs(reader) == {owner: heir, heir: None}


def test_a_caller_that_does_not_allow_it_has_them_taken_anew(ledger, reader):
    owner = start(ledger)
    assert "handed" not in ledger.slices.assign("op-2", AT_H2)
    assert heirs(reader)[owner] is None


def test_the_same_operation_gets_the_same_slices(ledger):
    owner, heir = move(ledger)
    again = ledger.slices.assign("op-2", AT_H2, hands_over=True)
    assert (again["allocation_uuid"], again["handed"]) == (heir, True)
    ledger.slices.release("op-3", owner, "h1")
    assert ledger.slices.assign("op-2", AT_H2) == again, "as it was decided"
    ledger.slices.release("op-4", heir, "h2")
    with pytest.raises(errors.Conflict, match="released already"):
        ledger.slices.assign("op-2", AT_H2, hands_over=True)


@pytest.mark.parametrize("cause", [Cause.AGENT_DOWN, Cause.AGENT_LOST, Cause.OFFLINE_STUCK])
def test_a_source_that_was_aside_hands_over_what_it_lets_go(ledger, reader, cause):
    owner, heir = move(ledger)
    ledger.slices.quarantine_allocation(owner, cause, "h1 was silent")
    assert [item[0] for item in owners(reader)] == ["quarantined"] * 2
    ledger.slices.release("op-3", owner, "h1")
    assert owners(reader) == [("online", "h2", heir)] * 2


def test_a_release_that_began_hands_over_as_well(ledger, reader):
    owner, heir = move(ledger)
    ledger.slices.begin_release(owner, "nobody claims it")
    ledger.slices.release("op-3", owner, "h1")
    assert owners(reader) == [("online", "h2", heir)] * 2


def test_a_fenced_source_hands_over_once_the_device_keeps_it_out(ledger, reader):
    owner, heir = move(ledger)
    ledger.failures.fence_host("h1", "it burns", force=True)
    assert owners(reader) == [("quarantined", "h1", owner)] * 2, "h1 may still write"
    assert ledger.slices.audit(POOL, [0, 1], "the device keeps h1 out") == 2
    assert owners(reader) == [("online", "h2", heir)] * 2
    assert heirs(reader) == {heir: None}


def test_a_fenced_destination_inherits_nothing(ledger, reader):
    owner, _ = move(ledger)
    ledger.failures.fence_host("h2", "it burns", force=True)
    assert (owners(reader), heirs(reader)) == ([("online", "h1", owner)] * 2, {owner: None})
    ledger.slices.release("op-3", owner, "h1")
    assert owners(reader) == [("sanitizing", None, None)] * 2


def test_slices_of_a_failed_device_stay_aside_as_the_heirs(ledger, reader):
    owner, heir = move(ledger)
    ledger.failures.fail_allocation(owner, 1, "pool0", notify=False)
    ledger.slices.release("op-3", owner, "h1")
    assert owners(reader) == [("quarantined", "h2", heir)] * 2
    assert {item.cause for item in reader.slices(POOL)[:2]} == {Cause.DEVICE_FAILED}


def test_a_host_that_is_to_inherit_is_not_removed(ledger):
    move(ledger)
    with pytest.raises(errors.NotEmpty, match="1 allocations that are being handed over to it"):
        ledger.removal.check_host("h2")


@pytest.mark.parametrize(
    "changes",
    [
        {"source": ""},
        {"source": "h2"},
        {"source": "h1", "consumer_uuid": "44444444-4444-4444-8444-444444444444"},
        {"source": "h1", "shape": (1, 1)},
        {"source": "h1", "pool_mib": 1024, "shape": None},
    ],
)
def test_what_cannot_be_handed_over_is_taken_anew(ledger, reader, changes):
    owner = start(ledger)
    answer = ledger.slices.assign("op-2", replace(AT_H2, **changes), hands_over=True)
    assert "handed" not in answer
    assert heirs(reader)[owner] is None
    assert owners(reader)[2][:2] == ("assigning", "h2")


@pytest.mark.parametrize("state", ["assigning", "releasing", "quarantined"])
def test_only_what_is_online_is_handed_over(ledger, reader, state):
    owner = ledger.slices.assign("op-1", AT_H1)["allocation_uuid"]
    if state == "releasing":
        ledger.slices.begin_release(owner, "nobody claims it")
    if state == "quarantined":
        ledger.slices.quarantine_allocation(owner, Cause.AGENT_LOST, "h1 does not list it")
    assert "handed" not in ledger.slices.assign("op-2", AT_H2, hands_over=True)
    assert heirs(reader)[owner] is None


def test_there_is_one_heir_at_most(ledger, reader):
    owner, heir = move(ledger)
    ledger.hosts.heartbeat(report("h3"))
    assert "handed" not in ledger.slices.assign("op-3", replace(AT_H2, host="h3"), hands_over=True)
    assert heirs(reader)[owner] == heir


def test_a_guest_moves_on_with_what_it_inherited(ledger, reader):
    owner, heir = move(ledger)
    ledger.slices.release("op-3", owner, "h1")
    back = ledger.slices.assign("op-4", replace(AT_H1, source="h2", shape=(2,)), hands_over=True)
    assert back["handed"]
    ledger.slices.acknowledge("op-4", back["allocation_uuid"], "h1")
    ledger.slices.release("op-5", heir, "h2")
    assert owners(reader) == [("online", "h1", back["allocation_uuid"])] * 2


def causes(reader):
    return {item.cause for item in reader.slices(POOL) if item.state == "quarantined"}


def test_slices_whose_source_wrote_its_caches_back_are_taken_up(ledger, reader):
    owner, heir = move(ledger, write_back=True)
    assert not ledger.slices.taken_up(heir, "h2"), "they are the source's"
    ledger.slices.release("op-3", owner, "h1", written_back=True)
    assert owners(reader) == [("online", "h2", heir)] * 2
    assert ledger.slices.taken_up(heir, "h2")
    with pytest.raises(errors.Conflict, match="belongs to host h2"):
        ledger.slices.taken_up(heir, "h1")


def test_what_a_source_had_in_its_caches_at_a_restart_is_lost(ledger, reader):
    """The slices are the heir's, so that nobody else gets them while it holds them; its guest may not run."""
    owner, heir = move(ledger, write_back=True)
    ledger.slices.release("op-3", owner, "h1")
    assert (owners(reader), causes(reader)) == ([("quarantined", "h2", heir)] * 2, {Cause.AGENT_LOST})
    with pytest.raises(errors.Conflict, match="set aside: agent_lost: host h1 let go of it and had not written"):
        ledger.slices.taken_up(heir, "h2")
    assert ledger.slices.reinstate(heir) == 0
    ledger.slices.release("op-4", heir, "h2")
    assert owners(reader) == [("sanitizing", None, None)] * 2, "the guest is started anew on others"
    with pytest.raises(errors.NotFound, match="attach again"):
        ledger.slices.taken_up(heir, "h2")


@pytest.mark.parametrize("cause", [Cause.HOST_FENCED, Cause.AGENT_LOST])
def test_a_source_that_wrote_nothing_back_leaves_slices_aside(ledger, reader, cause):
    owner, heir = move(ledger, write_back=True)
    if cause is Cause.HOST_FENCED:
        ledger.failures.fence_host("h1", "it burns", force=True)
    else:
        ledger.slices.quarantine_allocation(owner, cause, "h1 does not list it")
    assert not ledger.slices.taken_up(heir, "h2"), "nobody has said yet that h1 is kept out"
    ledger.slices.audit(POOL, [0, 1], "h1 is out")
    assert (owners(reader), causes(reader)) == ([("quarantined", "h2", heir)] * 2, {cause})
    assert heirs(reader) == {heir: None}
    with pytest.raises(errors.Conflict, match=f"set aside: {cause}"):
        ledger.slices.taken_up(heir, "h2")


@pytest.mark.parametrize("audited", [False, True])
def test_what_a_silent_source_lost_does_not_come_back_with_its_heir(ledger, reader, audited):
    """It was aside since its host was silent, and would be the heir's, ONLINE, as soon as that one reports it."""
    owner, heir = move(ledger, write_back=True)
    ledger.slices.quarantine_allocation(owner, Cause.AGENT_DOWN, "h1 was silent")
    if audited:
        ledger.slices.audit(POOL, [0, 1], "h1 does not hold them")
    else:
        ledger.slices.release("op-3", owner, "h1")
    assert (owners(reader), causes(reader)) == ([("quarantined", "h2", heir)] * 2, {Cause.AGENT_LOST})
    assert ledger.slices.reinstate(heir) == 0
    with pytest.raises(errors.Conflict, match="hard reboot its server"):
        ledger.slices.taken_up(heir, "h2")


def test_a_silent_heir_waits(ledger):
    """It is reinstated once it is back; nothing of its guest is lost."""
    owner, heir = move(ledger, write_back=True)
    ledger.slices.release("op-3", owner, "h1", written_back=True)
    ledger.slices.quarantine_allocation(heir, Cause.AGENT_DOWN, "h2 was silent")
    assert not ledger.slices.taken_up(heir, "h2")
    ledger.slices.reinstate(heir)
    assert ledger.slices.taken_up(heir, "h2")
