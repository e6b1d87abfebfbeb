"""The page stores of this host, as owner of what swap devices borrow: tells their processes what comes and goes.

Whatever a process was not told, as it or the agent had ended, it is told by `keep`, which compares.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oslo_log import log

from pondstack.domain.errors import PondError, Unavailable
from pondstack_agent.borrower.records import Held
from pondstack_agent.helper.client import HelperGone
from pondstack_agent.pagestore.client import StoreClient
from pondstack_agent.pagestore.exporter import SOCKET
from pondstack_agent.pagestore.settings import StoreSettings
from pondstack_agent.remote.borrowed import Borrowed
from pondstack_agent.remote.records import Consumer, Consumers, State

LOG = log.getLogger(__name__)

_WAIT_SECONDS = 1.0


@dataclass(frozen=True)
class StoreTemplate:
    """How page stores of this host are made. `common`: settings that all of them get."""

    folder: Path
    leave_seconds: float
    timeout_seconds: float
    launcher: str = ""
    common: Mapping[str, Any] = field(default_factory=dict)


class PageStores:
    """Implements remote.owners.Owner for swap devices."""

    def __init__(
        self,
        making: StoreTemplate,
        consumers: Consumers,
        borrowed: Borrowed,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._making, self._consumers, self._borrowed, self._clock = making, consumers, borrowed, clock

    def client(self, mine: Consumer) -> StoreClient:
        """Return the agent's end of a consumer's page store."""
        making = self._making
        return StoreClient(making.folder / mine.consumer_uuid, making.launcher, making.timeout_seconds)

    def make(self, mine: Consumer) -> None:
        """Have a consumer's page store run; raises Unavailable with the reason why it does not."""
        client = self.client(mine)
        settings = StoreSettings(mine.consumer_uuid, mine.mib, mine.mirror, **self._making.common)
        if not client.made:
            try:
                Path(mine.mirror).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                client.make(settings)
            except OSError as error:
                raise Unavailable(f"no page store can be made: {error}; see [page_store] mirror_folder") from error
        client.start()

    def remove(self, mine: Consumer) -> None:
        """End a consumer's page store, and remove its mirror: from now on it uses no buffers. Raises Unavailable."""
        self.client(mine).remove(Path(mine.mirror))

    def keep(self, mine: Consumer) -> dict[str, list[int]]:
        """Have a page store run and use all that its consumer has; returns what it has given up, by lender's name."""
        self.make(mine)
        client = self.client(mine)
        seen = client.view()["leases"]
        used, ended = ({tuple(name) for name in seen[key]} for key in ("used", "ended"))
        given_up: dict[str, list[int]] = {}
        for held, indexes in self._borrowed.of(mine):
            numbers = {index: held.keys[index].number for index in indexes}
            missing = [index for index, number in numbers.items() if (held.name, index, number) not in used | ended]
            if missing:
                self._tell(client, held, missing)
            if gone := [index for index, number in numbers.items() if (held.name, index, number) in ended]:
                given_up[held.name] = gone
        return given_up

    def view(self, mine: Consumer) -> dict[str, Any]:
        """Return where a consumer's pages are served, and what its page store tells, None when it does not answer."""
        client = self.client(mine)
        store: dict[str, Any] | None = None
        try:
            store = client.view()
        except PondError as error:
            LOG.debug("The page store of consumer %s does not answer: %s", mine.consumer_uuid, error)
        return {"socket": str(client.folder / SOCKET), "store": store}

    # As owner of the pages

    def arrived(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Have the owner's page store use buffers; if it does not answer, `keep` comes to it."""
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is None or mine.state == State.ENDING:
            return  # promised to this host, and nobody's yet; or going back
        try:
            self._tell(self.client(mine), held, indexes)
        except PondError as error:
            LOG.info("The page store of consumer %s is told of %s later: %s", mine.consumer_uuid, held.lender, error)

    def leave(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Have the owner's page store stop using buffers, and wait for it. Raises Unavailable: they are in use."""
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is None:
            return
        numbers = {index: held.buffers[index].key.number for index in indexes if index in held.buffers}
        making, client = self._making, self.client(mine)
        ends = self._clock() + making.leave_seconds + making.timeout_seconds
        while numbers:
            try:
                left = client.leave(held.name, numbers, making.leave_seconds, _WAIT_SECONDS)
            except HelperGone:
                return  # its next process does not get what is leaving
            numbers = {index: numbers[index] for index in left}
            if numbers and self._clock() > ends:
                raise Unavailable(f"{len(numbers)} buffers of lender {held.lender} are in use; see the mirror's disk")

    def lost(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Have the owner's page store look for itself: it has a link of its own."""
        del indexes
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is not None:
            try:
                self.client(mine).lost(held.name)
            except PondError as error:
                LOG.debug("The page store of consumer %s notices by itself: %s", mine.consumer_uuid, error)

    def _tell(self, client: StoreClient, held: Held, indexes: Sequence[int]) -> None:
        keys = {index: held.buffers[index].key.to_dict() for index in indexes if index in held.buffers}
        if keys:
            client.arrive(held.name, held.ticket, keys)
