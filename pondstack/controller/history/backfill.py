"""Reads Nova's API for what no notification told: before the first start, and while nobody listened."""

from collections.abc import Callable
from datetime import UTC, datetime

from oslo_log import log

from pondstack.clients.nova import Nova
from pondstack.db.store.history import History

LOG = log.getLogger(__name__)

OVERLAP_SECONDS = 900
"""Read twice, so that a change that Nova noted late, or by a clock that is slow, is not missed."""
IMAGES_AT_A_TIME = 100


class Backfill:
    """One round: what changed since the last one; the first time all that is there, and what was deleted lately."""

    def __init__(
        self,
        history: History,
        nova: Nova,
        keep_seconds: Callable[[], int],
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """`keep_seconds()`: how far back the first round asks; `stopping()`: whether to end early."""
        self._history = history
        self._nova = nova
        self._keep_seconds = keep_seconds
        self._stopping = stopping
        self._asked: set[str] = set()

    def run(self) -> None:
        """Read once. Raises Unavailable; what was read by then is kept, and read again the next time."""
        begun = self._history.now()
        last = self._history.read_until()
        since = begun - self._keep_seconds() if last is None else last - OVERLAP_SECONDS
        # Those that live on unchanged are in no list of changes.
        if (last is None and not self._read(None)) or not self._read(datetime.fromtimestamp(since, UTC)):
            return
        self._history.complete(since, begun)
        self._name_images()

    def _read(self, changed_since: datetime | None) -> bool:
        for page in self._nova.instances(changed_since):
            if self._stopping():
                return False
            self._history.record(page)
        return True

    def _name_images(self) -> None:
        """Ask for images without a known system once in this leader's time: most that have none never will."""
        systems = {}
        new = [image for image in self._history.unnamed_images() if image not in self._asked]
        for image in new[:IMAGES_AT_A_TIME]:
            if self._stopping():
                break
            system = self._nova.image_os(image)
            self._asked.add(image)
            if system:
                systems[image] = system
        if systems:
            self._history.name_images(systems)
            LOG.debug("%d images have told their operating system", len(systems))
