"""The churn of the pools, read from the journal: what starts took, and how long given-back slices needed to be free.

A slice is on its way back from the moment that its allocation was first seen unclaimed, or that its release began if
that was sooner, until it is FREE.
"""

from collections.abc import Mapping
from typing import Any

from pondstack.domain.free_buffer import Churn, Taken
from pondstack.domain.states import SliceState
from pondstack.ledger.free_buffers import MISS
from pondstack.ledger.moves import MOVES, Key
from pondstack.ledger.store import Entry, Recent

UNCLAIMED_SECONDS = "unclaimed_seconds"
"""Where the effect of a release says for how long its allocation had been unclaimed."""

_LEAVING = {str(SliceState.ASSIGNING), str(SliceState.ONLINE), str(SliceState.RELEASING)}
_RETURNING = {str(SliceState.RELEASING), str(SliceState.SANITIZING)}


class ChurnLog:
    """The churn of the last `window_seconds`. Not thread-safe."""

    def __init__(self) -> None:
        self.sequence: int | None = None
        """The last operation that was read, None before the first look."""
        self._taken: dict[str, tuple[str, Taken]] = {}
        self._returned: list[tuple[float, str, float]] = []
        self._leaving: dict[Key, float] = {}

    def add(self, recent: Recent, window_seconds: float) -> None:
        """Take over what was read, and forget what is older than the window."""
        for entry in recent.entries:
            self._take(entry)
            for move in entry.effect.get(MOVES, ()):
                self._follow(entry, move)
        self.sequence = recent.sequence
        oldest = recent.now - window_seconds
        self._taken = {uuid: item for uuid, item in self._taken.items() if item[1].at >= oldest}
        self._returned = [item for item in self._returned if item[0] >= oldest]
        self._leaving = {key: since for key, since in self._leaving.items() if since >= oldest}

    def of(self, pool_uuid: str) -> Churn:
        """Return the churn of one pool."""
        taken = sorted((item for pool, item in self._taken.values() if pool == pool_uuid), key=lambda item: item.at)
        return Churn(tuple(taken), tuple(seconds for _, pool, seconds in self._returned if pool == pool_uuid))

    def _take(self, entry: Entry) -> None:
        """Note what a start asked for; one that missed and got it later asked once.

        Host slices are no starts, and what is handed over takes no free slice.
        """
        if entry.effect.get("handed"):
            return
        if entry.kind == "assign" and "purpose" not in entry.effect.get("asked", {}):
            slices = sum(extent["count"] for extent in entry.effect["extents"])
        elif entry.kind == MISS:
            slices = entry.effect["slices"]
        else:
            return
        self._taken.setdefault(entry.operation_id, (entry.effect["pool_uuid"], Taken(entry.at, slices)))

    def _follow(self, entry: Entry, move: Mapping[str, Any]) -> None:
        for key in [(move["pool"], index) for index in move["indexes"]]:
            since = self._leaving.pop(key, None)
            if move["to"] == SliceState.FREE and since is not None:
                self._returned.append((entry.at, key[0], max(0.0, entry.at - since)))
            elif move["to"] in _RETURNING and move["from"] in _LEAVING:
                began = entry.at - (entry.effect.get(UNCLAIMED_SECONDS) or 0.0)
                self._leaving[key] = began if since is None else min(since, began)
