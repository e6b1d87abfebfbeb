"""Whose turn it is: a chain's actions go one kind after the other, chains go beside each other. Pure."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from pondstack.domain.plan import SETTLED, Action, ActionState


def chains(actions: Iterable[Action]) -> list[list[Action]]:
    """Return the actions by chain, in order."""
    found: dict[str, list[Action]] = {}
    for action in sorted(actions, key=lambda item: item.number):
        found.setdefault(action.chain, []).append(action)
    return list(found.values())


def has_failed(chain: Sequence[Action]) -> bool:
    """Return whether a chain cannot go on."""
    return any(action.state is ActionState.FAILED for action in chain)


def due(chain: Sequence[Action]) -> list[Action]:
    """Return the actions of a chain that may begin or go on: of the first kind that has some left."""
    if has_failed(chain):
        return [action for action in chain if action.state is ActionState.RUNNING]
    for _, group in groupby(chain, key=lambda action: action.kind):
        left = [action for action in group if action.state not in SETTLED]
        if left:
            return left
    return []


def is_settled(actions: Iterable[Action]) -> bool:
    """Return whether nothing is left to do."""
    return all(action.state in SETTLED for action in actions)
