"""Forged loans: each broken promise is found, and sound ones are not complained about."""

from dataclasses import replace

import pytest

from tests.robustness.history import Lent, Loan
from tests.robustness.validate_loans import check_loans

PLACE, OTHER = ("host-b", "life", 0), ("host-b", "life", 1)


def loan(uuid="uuid-1", acknowledged=1.0, returned=None, place=PLACE, **values):
    return Loan(f"op-{uuid}", "host-a", uuid, (place,), acknowledged, returned, **values)


def lent(*held, **values):
    found = {PLACE: ("free", None, None), OTHER: ("free", None, None)}
    return Lent(found | {item.buffers[0]: ("online", item.host, item.allocation_uuid) for item in held}, **values)


def codes(loans, held=None, drained=None):
    return sorted({item.code for item in check_loans(loans, held, drained)})


def test_sound_loans_are_not_complained_about():
    mine, next_one, never = loan(returned=2.0), loan("uuid-2", 2.0), loan("uuid-3", None, place=OTHER)
    assert codes([mine, next_one, never], lent(next_one), lent()) == []


def test_an_acknowledged_loan_that_the_ledger_does_not_know_is_lost():
    assert codes([loan()], lent()) == ["loan_lost"]
    assert codes([loan()], lent(loan("uuid-2"))) == ["loan_lost"]
    assert codes([loan()], Lent({PLACE: ("releasing", "host-a", "uuid-1")})) == ["loan_lost"]
    assert codes([loan()], Lent({})) == ["loan_lost"]


def test_two_users_of_one_buffer():
    assert codes([loan(returned=2.0), loan("uuid-2", 1.5)]) == ["double_user"]
    assert codes([loan(), loan("uuid-2", 9.0)]) == ["double_user"]


def test_wrong_bytes():
    assert codes([loan(wrong=["buffer host-b/0 holds another's"])]) == ["loan_bytes"]


@pytest.mark.parametrize(
    ("drained", "code"),
    [
        (lent(loan()), "loan_left"),
        (replace(lent(), allocations=("uuid-1",)), "loan_left"),
        (replace(lent(), returned=False), "lent_left"),
    ],
)
def test_what_does_not_come_back(drained, code):
    assert codes([loan(returned=2.0)], drained=drained) == [code]
