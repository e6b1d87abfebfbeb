"""Host slices: their consumers, and the next step of each."""

from uuid import UUID, uuid4

import pytest

from pondstack.domain.errors import HostUnusable, PurposeConflict
from pondstack.domain.host_slices import Act, Holding, HoldingKey, Step, steps
from pondstack.domain.purpose import Purpose, check_node
from pondstack.domain.requests import AssignRequest
from pondstack.rpc.wire import assign_request, to_arguments

POOL = "11111111-1111-4111-8111-111111111111"
KEY = HoldingKey("h1", POOL, Purpose.TIER)
FIRST, SECOND, THIRD = (KEY.consumer(number) for number in range(3))


def holding(wanted):
    return Holding("h1", POOL, Purpose.TIER, wanted)


def test_a_consumer_says_whose_it_is_and_which():
    assert str(UUID(FIRST)) == FIRST
    assert KEY.numbers([THIRD, "someone", FIRST]) == {0: FIRST, 2: THIRD}
    others = [HoldingKey("h2", POOL, Purpose.TIER), HoldingKey("h1", POOL, Purpose.BASE), HoldingKey("h1", "p", "tier")]
    assert not any(other.numbers([FIRST, SECOND]) for other in others)
    assert KEY.numbers([KEY.consumer(4095)]) == {4095: KEY.consumer(4095)}


def test_an_order_says_for_which_generation_of_the_host_it_was_given():
    first, second = KEY.order(7, uuid4()), KEY.order(7, uuid4())
    assert first != second
    assert str(UUID(first)) == first
    assert KEY.is_order(first, 7)
    assert KEY.is_order(second, 7)
    others = [HoldingKey("h2", POOL, Purpose.TIER), HoldingKey("h1", POOL, Purpose.BASE), HoldingKey("h1", "p", "tier")]
    assert not any(other.is_order(first, 7) for other in others)
    assert not any(KEY.is_order(first, generation) for generation in (0, 6, 8, 70))
    assert not KEY.is_order(str(uuid4()), 7)
    assert not KEY.numbers([first])


def test_claimed_then_held():
    assert list(steps(holding(1), {}, [])) == [Step(Act.CLAIM, FIRST)]
    assert list(steps(holding(1), {}, [FIRST])) == [Step(Act.HOLD, FIRST)]
    assert list(steps(holding(1), {FIRST: "a"}, [FIRST])) == []
    assert list(steps(holding(2), {FIRST: "a"}, [FIRST])) == [Step(Act.CLAIM, SECOND)]


def test_a_claim_that_somebody_dropped_is_claimed_again():
    assert list(steps(holding(1), {FIRST: "a"}, [])) == [Step(Act.CLAIM, FIRST, "a")]


def test_given_back_then_unclaimed_the_highest_number_first_to_go():
    held = {FIRST: "a", SECOND: "b"}
    assert list(steps(holding(1), held, [FIRST, SECOND])) == [Step(Act.GIVE_BACK, SECOND, "b")]
    assert list(steps(holding(1), {FIRST: "a"}, [FIRST, SECOND])) == [Step(Act.UNCLAIM, SECOND)]
    assert list(steps(holding(0), {FIRST: "a"}, [])) == [Step(Act.GIVE_BACK, FIRST, "a")]


def test_what_is_wanted_no_more_goes_before_anything_is_claimed():
    """The claim of another number may be what keeps Placement from the new one."""
    assert list(steps(holding(1), {}, [SECOND])) == [Step(Act.UNCLAIM, SECOND), Step(Act.CLAIM, FIRST)]


def test_a_fenced_host_has_its_slices_taken_by_devices_and_claims_nothing_after_that():
    assert list(steps(holding(1), {FIRST: "a"}, [FIRST], dead=True)) == []
    assert list(steps(holding(1), {}, [FIRST], dead=True)) == [Step(Act.UNCLAIM, FIRST)]


def test_guests_and_tiers_exclude_each_other_and_a_base_slice_goes_with_both():
    guest, tier, base = Purpose.GUEST, Purpose.TIER, Purpose.BASE
    for wanted, present in [(guest, []), (guest, [guest, base]), (tier, [tier, base]), (base, [guest]), (base, [tier])]:
        check_node(wanted, present, "h1", "pool0")
    with pytest.raises(PurposeConflict, match="has guests' slices of pool pool0"):
        check_node(tier, [base, guest], "h1", "pool0")
    with pytest.raises(PurposeConflict, match="holds slices of pool pool0 for tiering"):
        check_node(guest, [tier], "h1", "pool0")
    assert issubclass(PurposeConflict, HostUnusable)


def test_a_guests_request_is_what_it_was():
    """The journal compares requests that were made before an upgrade, and a former controller knows no purpose."""
    guest = AssignRequest("vm", "h1", POOL, 1024, 2048)
    assert "purpose" not in guest.fields()
    assert "purpose" not in to_arguments(guest)
    tier = AssignRequest(FIRST, "h1", POOL, 1024, 0, purpose=Purpose.TIER)
    assert to_arguments(tier)["purpose"] == "tier"
    assert assign_request(**to_arguments(tier)) == tier
    assert assign_request(**to_arguments(guest)) == guest
