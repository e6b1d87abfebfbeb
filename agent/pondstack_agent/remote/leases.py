"""Which keys of lenders the data plane uses for a guest, and which it should: what to tell it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pondstack_agent.data_plane.views import LeaseState, LeaseView

MOST_KEYS = 100
"""In one request: a line has 64 KiB at most."""

Names = Mapping[str, Mapping[int, int]]
"""By lender's name: index of each buffer to the number of its key."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What the data plane has to be told."""

    missing: dict[str, list[int]]
    """Buffers that it does not use yet, by lender's name."""
    strange: dict[str, list[int]]
    """Numbers of keys that it uses and should not, by lender's name."""
    lost: dict[str, list[int]]
    """Buffers whose lender has failed it, by lender's name."""


def compare(wanted: Names, used: Iterable[LeaseView]) -> Difference:
    """Return the difference between what should be used and what is."""
    seen: dict[str, dict[int, LeaseState]] = {}
    for lease in used:
        seen.setdefault(lease.lender, {})[lease.number] = lease.state
    missing, strange, lost = {}, {}, {}
    for lender, numbers in wanted.items():
        there = seen.get(lender, {})
        if found := sorted(index for index, number in numbers.items() if number not in there):
            missing[lender] = found
        if found := sorted(index for index, number in numbers.items() if there.get(number) is LeaseState.LOST):
            lost[lender] = found
    for lender, there in seen.items():
        mine = set(wanted.get(lender, {}).values())
        if found := sorted(n for n, state in there.items() if n not in mine and state is not LeaseState.LEFT):
            strange[lender] = found
    return Difference(missing, strange, lost)


def batches(indexes: Sequence[int], refused: Iterable[int] = ()) -> list[list[int]]:
    """Return buffers in the order and numbers in which to tell of them: what was refused before comes last, alone."""
    late = [index for index in indexes if index in set(refused)]
    first = [index for index in indexes if index not in set(refused)]
    return [first[at : at + MOST_KEYS] for at in range(0, len(first), MOST_KEYS)] + [[index] for index in late]
