"""What borrowers report, and what Placement claims, against the ledger's loans, rule by rule."""

from dataclasses import replace

import pytest

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.findings import Severity
from pondstack.controller.reconcile.holders import Claims
from pondstack.controller.reconcile.rules.rules import decide
from pondstack.domain.causes import Cause
from pondstack.domain.lending import LenderKind
from pondstack.domain.states import SliceState
from pondstack.tests.controller.builders import REPORT_AGE
from pondstack.tests.controller.lent_builder import LIFE, LOAN, SIZE, VM, LentBuilder


def found(built, **limits):
    return {finding.code: finding for finding in decide(built.observation(**limits))}


# Claims


def test_a_guaranteed_loan_that_nobody_claims_is_asked_back():
    finding = found(LentBuilder().age_loan(31.0))["loan_unclaimed"]
    assert finding.action == actions.AskBack(LOAN, "unclaimed: nobody claims it for 31 s")
    assert finding.host is None, "Placement is the evidence, no report"


def test_so_is_one_that_is_only_to_inherit():
    built = LentBuilder().age_loan(31.0)
    for index in (0, 1):
        built.put(index, allocation_uuid="another", heir=LOAN)
    assert found(built)["loan_unclaimed"].action == actions.AskBack(LOAN, "unclaimed: nobody claims it for 31 s")


def test_one_that_has_nothing_is_left_alone():
    built = LentBuilder().age_loan(31.0).release(0).release(1)
    assert "loan_unclaimed" not in found(built)


def test_not_before_the_grace_is_over():
    assert "loan_unclaimed" not in found(LentBuilder().age_loan(29.0))
    assert "loan_unclaimed" in found(LentBuilder().age_loan(29.0), unclaimed_grace_seconds=20.0)


def test_swap_needs_no_claim():
    assert "loan_unclaimed" not in found(LentBuilder().age_loan(31.0, guaranteed=False))
    assert "loan_unclaimed" not in found(LentBuilder().age_loan(31.0, guaranteed=False).silence("h2"))


@pytest.mark.parametrize("state", [SliceState.ASSIGNING, SliceState.ONLINE])
def test_in_whatever_state_it_is_used(state):
    built = LentBuilder().age_loan(31.0)
    for index in (0, 1):
        built.put(index, state=state)
    assert "loan_unclaimed" in found(built)


def test_what_is_asked_back_already_is_not_asked_back_again():
    built = LentBuilder().age_loan(31.0)
    for index in (0, 1):
        built.put(index, state=SliceState.RELEASING, reason="unclaimed: for the test")
    assert {"loan_releasing"} == set(found(built))
    assert found(built)["loan_releasing"].action is None, "the settler asks at each round"


def test_its_borrower_may_be_silent():
    assert "loan_unclaimed" in found(LentBuilder().age_loan(31.0).silence("h2"))


def test_a_claim_on_another_host_is_none():
    built = LentBuilder(claimed_on="h1")
    assert built.observation().loan_claimed == {LOAN: False}
    assert LentBuilder().observation().loan_claimed == {LOAN: True}


def test_a_migration_holds_the_claim_at_the_source():
    """The instance itself claims at the destination; it keeps what it borrowed until it is off at the source."""
    built = LentBuilder(claims={VM: 2 * SIZE, "migration": 2 * SIZE}, claimed_on="h1")
    assert built.observation().loan_claimed == {LOAN: False}, "that is a claim on another host"
    held = {"h1": {VM: 0}, "h2": {"migration": 0}}
    for remote, claimed in (
        ({VM: 2 * SIZE, "migration": 2 * SIZE}, True),
        ({VM: SIZE + 1, "migration": SIZE + 1}, True),  # whole buffers were lent
        ({VM: 3 * SIZE, "migration": 3 * SIZE}, True),  # a lender of one more was lost
        ({VM: 2 * SIZE, "migration": SIZE}, False),
        ({"migration": 2 * SIZE}, False),  # the instance is gone
    ):
        observation = replace(built.observation(), claims=Claims({}, held, remote))
        assert observation.loan_claimed == {LOAN: claimed}


def test_nothing_is_unclaimed_while_placement_does_not_say():
    built = LentBuilder().age_loan(31.0)
    built.claims = None
    assert found(built) == {}


def test_amounts_are_compared():
    built = LentBuilder(claims={VM: SIZE})
    assert found(built)["claim_differs"].subject == f"lent memory of consumer {VM}"
    assert found(LentBuilder(claims={VM: 2 * SIZE, "vm2": SIZE}))["claim_without_loan"].severity is Severity.INFO


# Swap disks


def test_a_swap_disk_that_nobody_claims_is_ended():
    built = LentBuilder().forget_disk()
    assert built.observation().loan_claimed == {LOAN: False}
    findings = found(built)
    assert set(findings) == {"swap_disk_unclaimed"}, "its loans go back with it"
    finding = findings["swap_disk_unclaimed"]
    assert finding.action == actions.EndSwap("h2", VM, (LOAN,))
    assert finding.action.reason == "unclaimed: h2 has it, of 128 MiB, and nobody claims it for 31 s"
    assert (finding.severity, finding.host) == (Severity.WARNING, "h2")


def test_one_that_has_borrowed_nothing_is_ended_too():
    built = LentBuilder()
    built.disks, built.unclaimed_disks = {"vm2": SIZE}, {("h2", "vm2"): 31.0}
    assert found(built)["swap_disk_unclaimed"].action == actions.EndSwap("h2", "vm2", ())


def test_not_before_the_grace_of_a_disk_is_over():
    assert found(LentBuilder().forget_disk(29.0)) == {}


@pytest.mark.parametrize(
    ("mirrors", "claimed"),
    [
        ({VM: SIZE}, True),
        ({VM: 0}, False),
        ({"migration": 2 * SIZE}, True),
        ({"migration": 3 * SIZE}, True),
        ({"migration": SIZE}, False),
        ({"vm3": 2 * SIZE}, False),
        (None, True),
    ],
    ids=["its own", "of memory only", "a migration", "with more", "of less", "another disk's", "nobody looked"],
)
def test_who_claims_a_swap_disk(mirrors, claimed):
    built = LentBuilder().forget_disk()
    built.mirrors = mirrors
    built.disks["vm3"] = SIZE
    observation = built.observation()
    assert observation.disk_claimed["h2", VM] == claimed
    assert observation.loan_claimed == {LOAN: claimed}
    assert ("swap_disk_unclaimed" in found(built)) != claimed


def test_of_a_silent_host_the_loans_are_asked_back_and_the_disk_waits():
    findings = found(LentBuilder().forget_disk().silence("h2"))
    assert findings["loan_unclaimed"].action == actions.AskBack(LOAN, "unclaimed: nobody claims it for 31 s")
    assert findings["swap_disk_unclaimed"].action is None


# Books


def test_what_a_borrower_uses_and_the_ledger_does_not_have_is_let_go():
    built = LentBuilder()
    built.books["allocations"]["loan-9"] = [8, 9]
    finding = found(built)["unknown_loan"]
    assert finding.action == actions.LetGo("h2", "loan-9", "h1", LIFE, (8, 9))
    assert (finding.severity, finding.host) == (Severity.CRITICAL, "h2")


@pytest.mark.parametrize("state", [SliceState.FREE, SliceState.SANITIZING])
def test_what_is_nobodys_is_let_go(state):
    built = LentBuilder().release(2, state, age=100.0)
    built.books["allocations"][LOAN] = [0, 1, 2]
    assert found(built)["conflicting_loan"].action == actions.LetGo("h2", LOAN, "h1", LIFE, (2,))


def test_what_is_anothers_is_let_go():
    built = LentBuilder().put(0, host="h3", allocation_uuid="loan-3")
    assert found(built)["conflicting_loan"].action == actions.LetGo("h2", LOAN, "h1", LIFE, (0,))


def test_what_is_being_handed_over_is_not_let_go():
    built = LentBuilder().put(0, host="h3", allocation_uuid="loan-3", heir=LOAN)
    assert "conflicting_loan" not in found(built)


def test_a_report_that_may_be_older_than_a_change_proves_nothing():
    built = LentBuilder().release(2, SliceState.SANITIZING, age=REPORT_AGE + 1.0)
    built.books["allocations"][LOAN] = [0, 1, 2]
    assert "conflicting_loan" not in found(built)


def test_what_a_lender_lost_stays_on_the_books_until_it_is_let_go():
    built = LentBuilder()
    for index in (0, 1):
        built.put(index, state=SliceState.QUARANTINED, cause=Cause.LENDER_LOST)
    built.told["buffers"] = [[2, 2, "", 3]]
    assert set(found(built)) == {"lender_lost", "claim_without_loan"}


@pytest.mark.parametrize(
    ("buffer", "is_left"),
    [
        ({}, True),
        ({"promised_to": "h2"}, False),
        ({"promised_to": "h3"}, True),
        ({"kind": LenderKind.ZOMBIE}, False),
        ({"kind": LenderKind.ZOMBIE, "promised_to": "h3"}, True),
        ({"host": "h2", "allocation_uuid": LOAN, "state": SliceState.ASSIGNING}, False),
    ],
    ids=["awake", "promised", "promised to another", "in the making", "sleeping, of another", "taken"],
)
def test_keys_of_promises_that_are_over_are_let_go(buffer, is_left):
    built = LentBuilder().put(2, **buffer)
    built.books["allocations"][""] = [2]
    finding = found(built).get("promise_left")
    assert (finding.action if finding else None) == (actions.LetGo("h2", "", "h1", LIFE, (2,)) if is_left else None)


def test_keys_of_a_lender_that_is_gone_are_let_go():
    built = LentBuilder()
    built.books["allocations"][""] = [7]
    assert found(built)["promise_left"].action == actions.LetGo("h2", "", "h1", LIFE, (7,))


def test_a_loan_that_its_borrower_does_not_report_is_asked_back():
    built = LentBuilder()
    built.books["allocations"][LOAN] = [1]
    finding = found(built)["loan_lost"]
    assert finding.action == actions.AskBack(LOAN, "lost: h2 does not report 1 of its buffers any more", ((LIFE, 0),))
    assert (finding.severity, finding.host) == (Severity.CRITICAL, "h2")


def inheriting(**values):
    """h2's guest is to move to it from h3, and h2 has the keys: the loan is acknowledged, as `values` say otherwise."""
    built = LentBuilder().age_loan(None, **{"acknowledged": True, **values})
    built.claims = {VM: 0}
    return built.put(0, host="h3", allocation_uuid="another", heir=LOAN)


def test_what_is_to_be_inherited_by_who_has_lost_its_state_is_asked_back():
    built = inheriting()
    built.books["allocations"] = {LOAN: [1]}
    finding = found(built)["loan_lost"]
    assert finding.action == actions.AskBack(LOAN, "lost: h2 does not report 1 of its buffers any more", ((LIFE, 0),))


def test_not_while_its_heir_has_it_or_may_not_have_the_keys_yet():
    assert "loan_lost" not in found(inheriting())
    waiting = inheriting(acknowledged=False)
    waiting.books["allocations"] = {LOAN: [1]}
    assert "loan_lost" not in found(waiting)


@pytest.mark.parametrize(
    "books",
    [
        {"leaving": {LOAN: [0]}},
        {"released": [{"allocation_uuid": LOAN, "indexes": [0]}]},
    ],
    ids=["it is leaving", "it was given back and not told"],
)
def test_what_is_on_its_way_is_not_lost(books):
    built = LentBuilder()
    built.books |= {"allocations": {LOAN: [1]}, **books}
    assert found(built) == {}


def test_an_older_report_and_a_silent_borrower_lose_nothing():
    built = LentBuilder().put(0, age=REPORT_AGE + 1.0)
    built.books["allocations"][LOAN] = [1]
    assert found(built) == {}
    built = LentBuilder().silence("h2")
    built.books["allocations"] = {}
    assert set(found(built)) == {"agent_down"}


def test_who_waits_for_memory_of_a_host_that_may_be_lost_is_told_of():
    built = LentBuilder()
    told = {"consumer_uuid": "vm", "seconds": 40, "lost": False}
    built.stranded = [told]
    finding = found(built)["guest_waits"]
    assert (finding.severity, finding.subject, finding.action) == (Severity.WARNING, "guest vm on h2", None)
    assert "hard reboot the server" in finding.detail
    built.stranded = [told | {"lost": True}]
    assert found(built)["guest_memory_lost"].severity is Severity.CRITICAL
    assert "guest_waits" not in found(built)
