"""What a VM could have from the pool, by its own past and its age."""

from dataclasses import replace

import pytest

from pondstack.ledger.qos_records import LongLived
from pondstack.qos.repredict import Rule, predict_again

DAY = 86400.0
NOW = 100 * DAY
RULE = Rule(DAY, 10.0, 1024)
VM = LongLived("vm", "p", "m16", 16384, 2048, "untouched", 8192.0, NOW - DAY, NOW - DAY, "measured")


def again(remaining=None, **values):
    found = predict_again([replace(VM, **values)], RULE, lambda _: remaining, NOW)
    return found[0] if found else None


def test_what_it_leaves_untouched_less_a_margin_is_wanted():
    found = again()
    assert found.wanted_mib == 6144, "8192 less 10 % of 16384, in whole slices"
    assert found.reclaimable_mib == 4096


def test_an_older_one_is_trusted_more():
    ages = [again(sized_at=NOW - days * DAY).wanted_mib for days in (1, 4, 16, 90)]
    assert ages == [6144, 7168, 7168, 7168]
    assert RULE.margin(16 * DAY, None) == RULE.margin(99 * DAY, None) == pytest.approx(0.025)


def test_one_that_ends_soon_is_trusted_more():
    assert RULE.margin(DAY, DAY / 2) == pytest.approx(0.05)
    assert RULE.margin(DAY, 100 * DAY) == pytest.approx(0.1)
    assert again(DAY / 2).wanted_mib == 7168


def test_one_whose_untouched_memory_shrank_wants_less_than_it_has_and_nothing_is_reclaimable():
    found = again(untouched_mib=1500.0)
    assert (found.wanted_mib, found.reclaimable_mib) == (0, 0)


def test_some_memory_stays_local():
    assert again(untouched_mib=16384.0, sized_at=0.0).wanted_mib == 15360


@pytest.mark.parametrize("source", ["fixed", "local", "control", "corrected", "present"])
def test_what_nobody_predicted_is_left_alone(source):
    assert again(split_source=source) is None


def test_a_young_one_is_not_predicted_again():
    assert again(sized_at=NOW - DAY + 1) is None
