"""Pure decisions of the borrower: lenders for pages, pages to move, pauses, rates."""

import random

from hypothesis import given, seed, settings
from hypothesis import strategies as st

from pondstack_rdma.store.policy import (
    LOST,
    NEVER,
    NOWHERE,
    Allowance,
    Load,
    backoff_seconds,
    choose_lender,
    choose_moves,
    lease_of,
    pack_place,
    slot_of,
)

loads = st.dictionaries(
    st.text(min_size=1, max_size=3), st.builds(Load, st.integers(0, 9), st.integers(0, 9)), max_size=6
)
places = st.lists(
    st.sampled_from([NEVER, NOWHERE, LOST, pack_place(1, 0), pack_place(2, 7), pack_place(3, 2**32 - 1)]),
    min_size=1,
    max_size=30,
)


@seed(20181)
@settings(max_examples=200, deadline=None, database=None)
@given(loads)
def test_the_lender_with_least_of_us_and_room(given_loads: dict[str, Load]) -> None:
    chosen = choose_lender(given_loads)
    with_room = {name: load for name, load in given_loads.items() if load.free}
    if not with_room:
        assert chosen is None
        return
    assert chosen is not None
    assert given_loads[chosen].free
    assert given_loads[chosen].used == min(load.used for load in with_room.values())


def test_pages_are_spread_evenly_and_a_choice_repeats() -> None:
    used = {"a": 0, "b": 0, "c": 0}
    for _ in range(30):
        name = choose_lender({lender: Load(count, 100) for lender, count in used.items()})
        assert name
        used[name] += 1
    assert set(used.values()) == {10}
    assert choose_lender({"b": Load(0, 5), "a": Load(0, 5), "c": Load(0, 6)}) == "c"
    assert choose_lender({"b": Load(0, 5), "a": Load(0, 5)}) == "a"


@seed(20181)
@settings(max_examples=200, deadline=None, database=None)
@given(places, st.sets(st.integers(1, 3)), st.integers(0, 40), st.integers(1, 40), st.integers(1, 40))
def test_moves_are_of_pages_that_need_it(where: list[int], leaving: set[int], begin: int, look: int, most: int) -> None:
    chosen, onward = choose_moves(where, leaving, begin, look, most)
    needing = {
        page for page, place in enumerate(where) if place == NOWHERE or (place >= 0 and lease_of(place) in leaving)
    }
    assert set(chosen) <= needing
    assert len(chosen) == len(set(chosen)) <= most
    assert 0 <= onward < len(where)
    if look >= len(where) and most >= len(needing):
        assert set(chosen) == needing


def test_each_page_has_its_turn() -> None:
    where = [NOWHERE] * 10
    seen, cursor = [], 0
    for _ in range(4):
        chosen, cursor = choose_moves(where, (), cursor, 10, 3)
        seen += chosen
    assert set(seen) == set(range(10))


@seed(20181)
@given(st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1))
def test_a_place_is_one_number(lease: int, slot: int) -> None:
    place = pack_place(lease, slot)
    assert 0 <= place < 2**63
    assert (lease_of(place), slot_of(place)) == (lease, slot)


def test_pauses_double_up_to_a_limit_and_are_spread() -> None:
    assert [backoff_seconds(tries, 0.1, 1.0, 1.0) for tries in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert backoff_seconds(10**6, 0.1, 30.0, 0.0) == 15.0


def test_a_rate_is_bounded() -> None:
    """Whatever the times of the calls: never more than the burst and the rate together."""
    dice = random.Random(20181)
    allowance, now, moved = Allowance(100.0, 10.0, left=10.0), 0.0, 0
    for _ in range(2000):
        now += dice.random() * dice.choice((0.001, 0.1, 3.0))
        most = allowance.take(now)
        assert most <= 10
        spent = dice.randint(0, most)
        allowance.spend(spent)
        moved += spent
        assert moved <= 10 + 100 * now
    assert allowance.take(now - 50) <= 10  # a clock that steps back does no harm
