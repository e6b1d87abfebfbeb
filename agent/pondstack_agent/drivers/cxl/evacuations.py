"""How often memory of each node of the host was taken offline: the kernel moves pages of guests that stay away, too."""

import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager


class Evacuations:
    """Counted in this life of the agent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[int] = Counter()
        self._ended: Counter[int] = Counter()

    @contextmanager
    def of(self, nodes: Collection[int]) -> Iterator[None]:
        """Take memory of nodes offline; it counts however it ends, as some of it may have gone."""
        with self._lock:
            self._running.update(nodes)
        try:
            yield
        finally:
            self.ended(nodes)
            with self._lock:
                self._running.subtract(nodes)

    def ended(self, nodes: Collection[int]) -> None:
        """Count one, of this life or of a former one that may have been killed in the middle."""
        with self._lock:
            self._ended.update(nodes)

    def by_node(self) -> dict[int, int | None]:
        """Return how many have ended, None while one is under way."""
        with self._lock:
            nodes = self._running.keys() | self._ended.keys()
            return {node: None if self._running[node] > 0 else self._ended[node] for node in nodes}
