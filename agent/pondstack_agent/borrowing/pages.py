"""What the owner of the pages (the page store of guests, the swap of a host) does when buffers come and go."""

from collections.abc import Sequence
from typing import Protocol

from pondstack_agent.borrowing.link import LenderLink


class Pages(Protocol):
    """Implemented by the page store. Its calls come from several threads, never two at once for one buffer.

    `link`: reads and writes the buffers by their indexes; it is the same object until they are given back.
    """

    def arrived(self, allocation_uuid: str, link: LenderLink, indexes: Sequence[int]) -> None:
        """The buffers may be used; called again once a lost link works again, maybe after content was lost."""

    def leave(self, allocation_uuid: str, link: LenderLink, indexes: Sequence[int]) -> None:
        """Stop using the buffers: copy back or elsewhere, or fall back to the mirror (US_reclaim, Zombieland 4.3).

        When it returns nobody uses them. It may take long, and is called again after a PondError or a restart.
        """

    def lost(self, allocation_uuid: str, link: LenderLink, indexes: Sequence[int]) -> None:
        """The lender does not answer: serve from the mirror until `arrived`."""
