"""Sizes the free buffers of the pools from their churn, once in each round of the leader."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from oslo_log import log

from pondstack.domain.free_buffer import Bounds, FreeBuffer, Shrinking, bounded, needed, settle
from pondstack.domain.rack import RackView
from pondstack.ledger.churn import ChurnLog
from pondstack.ledger.ledger import Ledger

LOG = log.getLogger(__name__)


class BufferSizer:
    """One leader's. The sizes themselves are in the ledger, and what they are made from is in the journal.

    A new leader goes on with the sizes of the former one, and reads the window of the journal at its first run; it only
    forgets since when a buffer might have shrunk.
    """

    def __init__(
        self, ledger: Ledger, view: Callable[[], RackView], options: Any, changed: Callable[[], object]
    ) -> None:
        """`options`: those of [controller], read at each run; `changed` is called when a buffer has another size."""
        self._ledger = ledger
        self._view = view
        self._options = options
        self._changed = changed
        self._log = ChurnLog()
        self._shrinking: dict[str, Shrinking | None] = {}

    def run(self) -> None:
        """Size all buffers; raises NotLeader, Unavailable."""
        window = self._options.free_buffer_window_seconds
        recent = self._ledger.free_buffers.recent(self._log.sequence, window)
        self._log.add(recent, window)
        resized = [
            self._size(uuid, detail.pool.slices_total, detail.free_buffer, recent.now)
            for uuid, detail in self._view().pools.items()
        ]
        if any(resized):
            self._changed()

    def _size(self, uuid: str, slices_total: int, before: FreeBuffer, now: float) -> bool:
        """Write down what has changed; returns whether it is another size."""
        options = self._options
        bounds = Bounds(options.free_buffer_slices, options.free_buffer_max_percent)
        wanted = bounded(needed(self._log.of(uuid)), bounds, slices_total)
        present = bounded(before, bounds, slices_total)
        size, self._shrinking[uuid] = settle(
            present, wanted, options.free_buffer_hold_seconds, self._shrinking.get(uuid), now
        )
        if replace(size, misses=before.misses) == before:
            return False
        self._ledger.free_buffers.resize(uuid, size)
        if size.slices == before.slices:
            return False
        LOG.info(
            "Pool %s keeps %d free slices back, it was %d: %d starts took up to %d slices in the %s s in which memory "
            "comes back",
            uuid,
            size.slices,
            before.slices,
            size.starts,
            size.needed_slices,
            size.give_back_seconds,
        )
        return True
