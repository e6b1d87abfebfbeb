"""What is lent, in short. Pure."""

from collections.abc import Iterable
from itertools import groupby

from pondstack_agent.lending.model import Buffer

Run = list[int | str]
"""First index, count, borrower ('' nobody), generation."""


def runs(buffers: Iterable[Buffer]) -> list[Run]:
    """Return buffers that follow each other and are alike as one: a host may lend thousands."""
    found = []
    alike = groupby(enumerate(buffers), lambda item: (item[1].index - item[0], item[1].borrower, item[1].generation))
    for (_, borrower, generation), group in alike:
        members = [buffer.index for _, buffer in group]
        run: Run = [members[0], len(members), borrower, generation]
        found.append(run)
    return found
