"""Page stores that agents of former releases made for swap devices: nothing makes them any more, and they go.

A process of one may have outlived its agent. It reaches its buffers by links of its own, and whoever swaps to it has
its pages nowhere else: it is not killed. Once it has ended, what it had borrowed goes back, and its files are removed.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oslo_log import log

from pondstack.domain.errors import HostUnusable, Unavailable
from pondstack_agent.borrower.records import Held
from pondstack_agent.helper.lock import lock_held, pid_of
from pondstack_agent.remote.records import Consumer, Consumers

LOG = log.getLogger(__name__)

LOCK = "store.lock"


class FormerStores:
    """Implements remote.owners.Owner for consumers that nothing serves any more. `folder`: that of all page stores."""

    def __init__(self, folder: Path, consumers: Consumers) -> None:
        self._folder, self._consumers = folder, consumers

    def make(self, mine: Consumer) -> None:
        """Raise HostUnusable: none is made any more."""
        raise HostUnusable(f"consumer {mine.consumer_uuid} had a page store, and there are none any more; release it")

    def remove(self, mine: Consumer) -> None:
        """Remove the files of a page store; raises Unavailable while its process lives, with the way to end it."""
        folder, mirror = self._folder / mine.consumer_uuid, Path(mine.mirror)
        self._check_ended(mine)
        if not folder.exists() and not mirror.exists():  # told before: its buffers are on their way
            return
        LOG.warning(
            "Consumer %s had a page store of a former release, which has ended: what it had borrowed goes back, and "
            "%s and %s are removed",
            mine.consumer_uuid,
            folder,
            mirror,
        )
        try:
            mirror.unlink(missing_ok=True)
            if folder.exists():
                shutil.rmtree(folder)
        except OSError as error:  # nothing uses them, and the buffers are to go back
            LOG.warning("Files of a former page store stay; remove %s and %s: %s", folder, mirror, error)

    def keep(self, mine: Consumer) -> dict[str, list[int]]:
        """Return nothing: they only end."""
        del mine
        return {}

    def view(self, mine: Consumer) -> dict[str, Any]:
        """Return nothing: who was served is told by the process itself, if it lives."""
        del mine
        return {}

    def arrived(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Do nothing: nothing more is used."""

    def leave(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Raise Unavailable while a process uses the buffers; it falls back to its mirror when its keys are revoked."""
        del held, indexes
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is not None:
            self._check_ended(mine)

    def lost(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Do nothing: its process notices by itself."""

    def _check_ended(self, mine: Consumer) -> None:
        lock = self._folder / mine.consumer_uuid / LOCK
        if lock_held(lock):
            raise Unavailable(
                f"a page store of a former release runs as process {pid_of(lock)}: stop what swaps to it, then `kill` "
                "it; what it has borrowed goes back then. Swap disks are the data plane's now (pond:swap_mb)"
            )
