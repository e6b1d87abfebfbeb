"""Who owns the pages of a consumer: the data plane those of instances and disks, nobody what a former agent left."""

from collections.abc import Sequence
from typing import Any, Protocol

from pondstack_agent.borrower.pages import Pages
from pondstack_agent.borrower.records import Held
from pondstack_agent.remote.records import Consumer, Consumers


class Owner(Pages, Protocol):
    """Uses what consumers of one kind borrow."""

    def make(self, mine: Consumer) -> None:
        """Have a place for a consumer's pages, if it needs one before it borrows; raises Unavailable, HostUnusable."""

    def remove(self, mine: Consumer) -> None:
        """End the use of all that a consumer has; raises Unavailable, Conflict."""

    def keep(self, mine: Consumer) -> dict[str, list[int]]:
        """Compare what is used with what is borrowed, and act; returns what is given up, by lender's name."""

    def view(self, mine: Consumer) -> dict[str, Any]:
        """Return what becomes a part of get_remote's answer."""


class Owners:
    """Implements borrower.pages.Pages for all consumers of a host."""

    def __init__(self, consumers: Consumers, instances: Owner, disks: Owner, former: Owner) -> None:
        self._consumers, self._instances, self._disks, self._former = consumers, instances, disks, former

    def of(self, mine: Consumer) -> Owner:
        """Return who owns a consumer's pages."""
        if mine.guaranteed:
            return self._instances
        return self._former if mine.is_former else self._disks

    def arrived(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Tell the owner, if anybody is: else they are promised only."""
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is not None:
            self.of(mine).arrived(allocation_uuid, held, indexes)

    def leave(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Have the owner stop using buffers."""
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is not None:
            self.of(mine).leave(allocation_uuid, held, indexes)

    def lost(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Tell the owner that keys are dead."""
        mine = self._consumers.owner_of(allocation_uuid)
        if mine is not None:
            self.of(mine).lost(allocation_uuid, held, indexes)
