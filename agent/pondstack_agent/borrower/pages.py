"""What the owner of the pages (RAM extension, swap disks) does when buffers come and go."""

from collections.abc import Sequence
from typing import Protocol

from pondstack_agent.borrower.records import Held


class Pages(Protocol):
    """Implemented over the data plane. Its calls come from several threads, never two at once for one buffer.

    `held`: what this host has of the lender, with the ticket and the keys by which its owner reaches the buffers.
    """

    def arrived(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """The buffers may be used; called again when the controller repeats itself."""

    def leave(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Stop using the buffers: copy back or elsewhere, or fall back to the mirror (US_reclaim, Zombieland 4.3).

        When it returns nobody uses them. It may take long, and is called again after a PondError or a restart.
        """

    def lost(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """The keys of the buffers in `held` are dead, as newer ones came: serve from the mirror until `arrived`."""
