"""Who gets which buffers: zombies first, spread over lenders, never one's own; who gives which back."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondstack.domain import buffer_choice
from pondstack.domain.errors import BufferShortage
from pondstack.domain.escrow import Reach
from pondstack.domain.lending import Buffer, LenderKind
from pondstack.domain.states import SliceState

ZOMBIE, ACTIVE = LenderKind.ZOMBIE, LenderKind.ACTIVE


def buffers(lender: str, count: int, kind: LenderKind = ZOMBIE, **values) -> list[Buffer]:
    return [Buffer(lender, f"life-{lender}", index, index * 64, 64, kind, **values) for index in range(count)]


def owned(item: Buffer, allocation: str = "a1") -> Buffer:
    return replace(item, state=SliceState.ONLINE, host="h9", allocation_uuid=allocation)


def lenders(chosen) -> list[str]:
    return [item.lender for item in chosen]


def test_zombies_come_first_and_each_takes_its_part() -> None:
    free = buffers("a1", 8, ACTIVE) + buffers("z1", 3) + buffers("z2", 2)
    assert lenders(buffer_choice.choose(free, 4, guaranteed=True)) == ["z1", "z1", "z2", "z1"]
    assert sorted(lenders(buffer_choice.choose(free, 7, guaranteed=True))) == ["a1", "a1", "z1", "z1", "z1", "z2", "z2"]


def test_all_or_nothing_against_as_much_as_there_is() -> None:
    free = buffers("z1", 3)
    with pytest.raises(BufferShortage, match="4 buffers are wanted and 3 are free"):
        buffer_choice.choose(free, 4, guaranteed=True)
    assert len(buffer_choice.choose(free, 4, guaranteed=False)) == 3
    assert buffer_choice.choose([], 4, guaranteed=False) == ()
    with pytest.raises(ValueError, match="0 buffers"):
        buffer_choice.choose(free, 0, guaranteed=False)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 40))
def test_no_lender_has_more_than_its_part(sizes: list[int], count: int) -> None:
    """The one that gives most gives no more than one buffer above what an even spread over those with room needs."""
    free = [item for number, size in enumerate(sizes) for item in buffers(f"z{number}", size)]
    chosen = buffer_choice.choose(free, count, guaranteed=False)
    assert len(set(chosen)) == len(chosen) == min(count, sum(sizes))
    left = [size - lenders(chosen).count(f"z{number}") for number, size in enumerate(sizes)]
    given_by = [number for number, size in enumerate(sizes) if left[number] < size]
    assert max(left) - min(left[number] for number in given_by) <= 1


def test_what_a_borrower_cannot_have() -> None:
    items = [
        *buffers("me", 1, escrowed=True),
        *buffers("dead", 1, ACTIVE),
        *buffers("leaver", 1, leaving=True, escrowed=True),
        *buffers("without keys", 1),
        *buffers("disclosed", 1, promised_to="another", escrowed=True),
        owned(buffers("taken", 1)[0]),
        replace(buffers("dirty", 1)[0], state=SliceState.SANITIZING),
        *buffers("woken", 1, ACTIVE, escrowed=True),
        *buffers("woken again", 1, ACTIVE, promised_to="me"),
        *buffers("of before", 1, escrowed=True, generation=2),
        *buffers("not linked", 1, escrowed=True),
        *buffers("mine", 1, promised_to="me", escrowed=True),
        *buffers("anybody's", 1, escrowed=True),
        *buffers("fine", 1, ACTIVE),
    ]
    keys = {(item.incarnation, item.index): 0 for item in items}
    links = {(item.lender, item.incarnation) for item in items if item.lender != "not linked"}
    reach = Reach(keys, links)
    assert lenders(buffer_choice.usable(items, "me", {"dead"}, reach)) == ["mine", "anybody's", "fine"]
    assert lenders(buffer_choice.usable(items, "me", {"dead"})) == ["fine"]


def test_what_nobody_else_can_have_comes_first() -> None:
    items = [*buffers("z1", 2, escrowed=True), *buffers("z2", 1, escrowed=True, promised_to="me")]
    assert lenders(buffer_choice.choose(items, 2, guaranteed=True)) == ["z2", "z1"]


def test_reclaim_takes_first_what_harms_least() -> None:
    free, swap, ext, large = buffers("z1", 6)[:1], [], [], []
    one, two, three, four, five = buffers("z1", 6)[1:]
    swap, ext, large = [owned(one, "swap")], [owned(two, "small")], [owned(item, "large") for item in (three, four)]
    leaving = replace(five, leaving=True)
    mine = [*large, *ext, *swap, *free, leaving]
    order = buffer_choice.to_reclaim(mine, 9, {"swap"})
    assert [item.index for item in order] == [5, 0, 1, 3, 4, 2]
    assert buffer_choice.to_reclaim(mine, 2, {"swap"}) == order[:2]
    assert buffer_choice.to_reclaim(mine, 0, set()) == ()
