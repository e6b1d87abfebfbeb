"""The hard budget: whatever a model does, so many are hurt and no more, for what this is worth."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondstack.domain.allowance import Allowance
from pondstack.domain.history import Decided
from pondstack.prediction.budget import Account, Tally, tallies

HOUR = 3600
COUNT = st.integers(0, 500)


def decided(uuid="i", version="um-1", pool_mib=4096, untouched_mib=None, observed=0, source="untouched", whole=False):
    return Decided(uuid, version, source, pool_mib, 5.0, untouched_mib, observed, whole)


def test_what_comes_of_an_instance():
    told = {
        "nobody looked": decided(),
        "not long enough": decided(untouched_mib=5000, observed=HOUR),
        "proven": decided(untouched_mib=4096, observed=6 * HOUR),
        "ended well": decided(untouched_mib=4096, observed=60, whole=True),
        "failed at once": decided(untouched_mib=4095, observed=60),
        "nothing of the pool": decided(pool_mib=0, untouched_mib=0),
    }
    found = {name: tallies([item], {}, 6 * HOUR)["um-1"] for name, item in told.items()}
    assert found["nobody looked"] == found["not long enough"] == Tally(1, unproven=1)
    assert found["proven"] == found["ended well"] == Tally(1, proven=1)
    assert found["failed at once"] == Tally(1, failed=1)
    assert found["nothing of the pool"] == Tally(1)


def test_an_insensitive_one_fails_by_its_counters():
    items = [decided(name, "li-1", source="insensitive", untouched_mib=0) for name in ("fast", "slow", "unknown")]
    found = tallies(items, {"fast": 5.0, "slow": 5.1}, 6 * HOUR)
    assert found == {"li-1": Tally(3, failed=1, proven=1, unproven=1)}


def account(tally, trial=10, version="um-1"):
    return Account({version: tally}, 98.0, trial)


def test_a_new_model_begins_with_its_trial():
    fresh = Account({}, 98.0, 10)
    allowance = fresh.allowance(("um-1", ""))
    assert allowance.allows("um-1", 10)
    assert not allowance.allows("um-1", 11)
    assert not allowance.less(9.5).allows("um-1")


def test_a_proven_model_gets_tenfold_room():
    assert account(Tally(10, proven=10)).allowance(("um-1",)).allows("um-1", 110)
    assert not account(Tally(10, proven=10)).allowance(("um-1",)).allows("um-1", 111)


def test_a_used_up_budget_holds_again_when_enough_others_went_well():
    spent = account(Tally(30, failed=10, proven=20))
    assert spent.left == 0
    assert not spent.allowance(("um-1",)).allows("um-1")
    assert not spent.allowance(("um-1",)).allows("")
    assert account(Tally(1000, failed=10, proven=990)).left == 10


def test_another_version_begins_anew_within_the_same_budget():
    both = Account({"um-1": Tally(100, failed=8, proven=92), "um-2": Tally(1, unproven=1)}, 98.0, 10)
    assert both.left == pytest.approx(1.0)
    assert both.allowance(("um-2",)).allows("um-2")
    assert not both.allowance(("um-2",)).allows("um-2", 2)


@given(st.integers(1, 50), st.floats(50, 99.9), st.lists(st.tuples(COUNT, COUNT, COUNT), min_size=1, max_size=4))
def test_what_is_allowed_keeps_to_the_budget_at_the_feared_rate(trial, target, counts):
    known = {
        str(number): Tally(failed + proven + unproven, failed, proven, unproven)
        for number, (failed, proven, unproven) in enumerate(counts)
    }
    before = Account(known, target, trial)
    allowance = before.allowance(tuple(known))
    for version, tally in known.items():
        for more in (1, 10, 100):
            feared = sum(item.feared for item in known.values()) + tally.rate * more
            if allowance.allows(version, more):
                assert feared <= before.allowed + 1e-6
            else:
                assert feared > before.allowed - 1e-6 or before.left <= 0


def play(chance, target=98.0, steps=1200, versions=("um-1", "um-2"), proving=20):
    """Place an instance a step, where it is allowed; what came of it is known a while later. Return who was hurt."""
    dice = random.Random(3)
    placed: list[tuple[str, bool, int]] = []
    for step in range(steps):
        version = versions[step * len(versions) // steps]
        known = {}
        for name in versions:
            mine = [item for item in placed if item[0] == name]
            done = [bad for _, bad, when in mine if step - when >= proving]
            known[name] = Tally(len(mine), sum(done), len(done) - sum(done), len(mine) - len(done))
        if Account(known, target, 10).allowance((version,)).allows(version):
            placed.append((version, dice.random() < chance, step))
        yield sum(bad for _, bad, _ in placed), len(placed)


@pytest.mark.parametrize("target", [98.0, 90.0])
def test_a_model_that_is_always_wrong_hurts_what_it_may_and_no_more_in_any_version(target):
    for hurt, placed in play(1.0, target):
        assert hurt <= max(10, (100 - target) / 100 * placed)
    assert hurt == 10


def test_one_that_is_often_wrong_is_stopped():
    *_, (hurt, placed) = play(0.5)
    assert hurt <= 15
    assert placed <= 30


def test_a_good_model_is_not_held_back_for_long():
    *_, (hurt, placed) = play(0.0, versions=("um-1",))
    assert hurt == 0
    assert placed >= 1200 - 2 * 20


def test_it_travels():
    allowance = Allowance(7.5, {"um-1": 0.25})
    assert Allowance.from_wire(allowance.to_wire()) == allowance
    assert allowance.cost("unknown") == 1.0
    assert allowance.cost("") == 0.0


def test_it_is_told_in_words():
    told = account(Tally(30, failed=2, proven=20, unproven=8)).to_json()
    assert told["text"].startswith("2 of 30 instances that models decided were mispredicted, 8 are not proven yet")
    assert told["versions"]["um-1"]["unproven"] == 8
