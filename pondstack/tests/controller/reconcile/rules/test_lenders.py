"""What lenders report of buffers and keys, against the ledger, rule by rule."""

from dataclasses import replace

import pytest

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.findings import Severity
from pondstack.controller.reconcile.rules.rules import decide
from pondstack.domain.causes import Cause
from pondstack.domain.lending import LenderKind
from pondstack.domain.states import SliceState
from pondstack.tests.controller.builders import OLD, REPORT_AGE
from pondstack.tests.controller.lent_builder import LIFE, SEQUENCE, LentBuilder


def found(built, **limits):
    return {finding.code: finding for finding in decide(built.observation(**limits))}


def test_nothing_is_found_where_all_agree():
    assert found(LentBuilder()) == {}


# What is lent


def fewer(built):
    built.told["buffers"] = [[0, 2, "h2", 3], [2, 1, "", 3]]


def more(built):
    built.told["buffers"] = [[0, 2, "h2", 3], [2, 5, "", 3]]


def another_life(built):
    built.told["incarnation"] = "life-2"


def nothing(built):
    built.told |= {"incarnation": "", "buffers": [], "buffer_mib": 0}


def another_kind(built):
    built.told["kind"] = "zombie"


def unheard_of(built):
    built.lender = replace(built.lender, incarnation="")


@pytest.mark.parametrize("change", [fewer, more, another_life, nothing, another_kind, unheard_of])
def test_a_lender_that_lends_something_else_is_taken_at_its_word(change):
    built = LentBuilder()
    change(built)
    finding = found(built)["lender_differs"]
    there = sorted(index for first, count, *_ in built.told["buffers"] for index in range(first, first + count))
    offsets = tuple((index, index * built.told["buffer_mib"]) for index in there)
    assert finding.action == actions.TakeDelegation(
        "h1", built.told["incarnation"], built.told["kind"], built.told["buffer_mib"], offsets, SEQUENCE
    )
    assert (finding.severity, finding.host) == (Severity.WARNING, "h1")


@pytest.mark.parametrize("state", ["pending", "telling"])
def test_not_while_it_lends_or_takes_back(state):
    built = LentBuilder()
    fewer(built)
    built.told["operations"][0]["state"] = state
    assert found(built) == {}


def test_not_when_the_lender_itself_did_not_answer():
    built = LentBuilder()
    fewer(built)
    built.told["answers"] = False
    assert found(built) == {}


def test_not_by_a_report_that_is_older_than_its_last_word():
    built = LentBuilder()
    fewer(built)
    built.lender = replace(built.lender, sequence=SEQUENCE)
    assert found(built) == {}


def test_not_by_a_host_that_is_silent_or_fenced():
    built = LentBuilder().silence("h1")
    fewer(built)
    assert set(found(built)) == {"agent_down"}
    built = LentBuilder(fenced={"h1": "dead"})
    fewer(built)
    assert set(found(built)) == {"host_fenced"}


def test_what_a_lender_lost_is_not_counted_against_it():
    built = LentBuilder().put(1, state=SliceState.QUARANTINED, cause=Cause.LENDER_LOST)
    built.told["buffers"] = [[0, 1, "h2", 3], [2, 2, "", 3]]
    assert set(found(built)) == {"lender_lost", "claim_differs"}


# Keys


def test_a_key_of_a_free_buffer_is_ended():
    built = LentBuilder()
    built.told["buffers"] = [[0, 3, "h2", 3], [3, 1, "", 3]]
    finding = found(built)["key_left"]
    assert finding.action == actions.RevokeKeys("h1", LIFE, ((2, 3),))
    assert finding.severity is Severity.CRITICAL


def test_a_promised_key_may_be_there():
    built = LentBuilder().put(2, promised_to="h2").put(3, promised_to="h2")
    built.told["buffers"][1] = [2, 2, "h2", 3]
    assert found(built) == {}


def test_a_promise_in_the_making_is_left_alone():
    built = LentBuilder(lender=replace(LentBuilder().lender, kind=LenderKind.ZOMBIE))
    for index in range(4):
        built.put(index, kind=LenderKind.ZOMBIE)
    built.told |= {"kind": "zombie", "buffers": [[0, 2, "h2", 3], [2, 2, "h3", 3]]}
    assert found(built) == {}


def test_a_key_of_another_than_the_owner_is_ended_but_not_the_owners():
    built = LentBuilder()
    built.told["buffers"] = [[0, 1, "h3", 2], [1, 1, "h2", 3], [2, 2, "", 3]]
    finding = found(built)["key_differs"]
    assert finding.action == actions.RevokeKeys("h1", LIFE, ((0, 2),)), "up to the generation before the owner's"


@pytest.mark.parametrize(("run", "code"), [(0, "key_differs"), (1, "key_left")])
def test_a_key_that_is_newer_than_the_ledger_is_named_only(run, code):
    built = LentBuilder()
    first, count, *_ = built.told["buffers"][run]
    built.told["buffers"][run] = [first, count, "h3", 4]
    assert found(built)[code].action is None


def test_what_has_no_key_any_more_is_asked_back():
    built = LentBuilder()
    built.told["buffers"] = [[0, 1, "", 3], [1, 1, "h2", 3], [2, 2, "", 3]]
    action = found(built)["key_missing"].action
    assert (action.allocation_uuid, action.only) == ("loan-1", ((LIFE, 0),))


@pytest.mark.parametrize("state", [SliceState.ASSIGNING, SliceState.RELEASING])
def test_a_key_may_be_missing_on_its_way(state):
    built = LentBuilder().put(0, state=state).put(1, state=state)
    built.told["buffers"][0] = [0, 2, "", 3]
    assert "key_missing" not in found(built)


def test_a_report_that_may_be_older_than_a_change_tells_nothing_of_keys():
    built = LentBuilder().put(2, age=REPORT_AGE + 1.0)
    built.told["buffers"][1] = [2, 1, "h2", 3]
    built.told["buffers"].append([3, 1, "", 3])
    assert found(built) == {}
    assert set(found(built, settle_seconds=0.5)) == {"key_left"}


# Escrow


def asleep(**values):
    """Return a world in which h1 may sleep; all its keys were in escrow, and 2 is free for h2 alone."""
    built = LentBuilder(lender=replace(LentBuilder().lender, kind=LenderKind.ZOMBIE))
    for index, owner in enumerate(("h2", "h2", "h2", None)):
        built.put(index, kind=LenderKind.ZOMBIE, escrowed=True, promised_to=owner)
    built.told["kind"] = "zombie"
    built.links = values.get("links")
    return built


def test_keys_in_escrow_are_nobodys():
    """A lender names the first of their borrowers."""
    built = asleep()
    built.told["buffers"] = [[0, 4, "h0", 1]]
    assert found(built) == {}
    for index in range(4):
        built.put(index, kind=LenderKind.ACTIVE)
    built.lender, built.told["kind"] = LentBuilder().lender, "active"
    assert found(built) == {}, "the settler has them end"


def test_an_owner_without_a_key_is_noticed_while_others_have_theirs():
    built = asleep()
    built.told["buffers"] = [[0, 1, "", 1], [1, 3, "h2", 1]]
    assert found(built)["key_missing"].action.only == ((LIFE, 0),)


def test_what_a_crash_of_a_data_plane_made_useless_is_told():
    built = asleep(links=[])
    finding = found(built)["lender_unreachable"]
    assert (finding.subject, finding.host, finding.action) == ("lender h1", "h1", None)
    assert finding.detail.startswith("h2 has lost its link to h1, which sleeps: nobody can use 3 buffers")
    assert "lender_unreachable" in found(asleep(links=[["h1", "life-0"]]))


@pytest.mark.parametrize("links", [[["h1", LIFE]], None], ids=["linked", "a former agent"])
def test_what_is_linked_is_reached(links):
    assert "lender_unreachable" not in found(asleep(links=links))


# What waits, and what contradicts itself


def test_a_lender_that_ends_no_keys_is_named():
    built = LentBuilder().release(2, SliceState.SANITIZING)
    assert found(built)["sanitizing_stuck"].subject == "buffer h1/2"
    built.put(2, age=10.0)
    assert found(built) == {}
    asleep = LentBuilder().release(2, SliceState.SANITIZING, kind=LenderKind.ZOMBIE)
    assert "sanitizing_stuck" not in found(asleep), "until it is awake"


def test_keys_of_a_fenced_borrower_are_waited_for():
    built = LentBuilder(fenced={"h2": "dead"})
    for index in (0, 1):
        built.put(index, state=SliceState.QUARANTINED, cause=Cause.HOST_FENCED)
    assert "fence_unconfirmed" in found(built)


def test_the_ledgers_own_contradictions():
    lost = LentBuilder()
    lost.loans.clear()
    assert found(lost)["ledger_loan_missing"].severity is Severity.CRITICAL
    empty = LentBuilder()
    for index in (0, 1):
        empty.release(index)
    empty.told["buffers"], empty.books["allocations"] = [[0, 4, "", 3]], {}
    assert "ledger_loan_empty" in found(empty)
    over = LentBuilder()
    over.put(0, incarnation="life-0", age=OLD)
    assert "ledger_incarnation" in found(over)
