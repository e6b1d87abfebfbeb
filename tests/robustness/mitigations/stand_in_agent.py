"""pondstack-agent of a fake compute, which can copy: its emulated slices pass for a node of the host.

A fake compute's guests are no processes: they have no pages, and a copy of nothing is over at once, as one of a guest
that does not run. All else is the agent's own: records, locks, orders of the controller, the way back of the slices. Of
libvirt there is its test driver, which has none of the guests.
"""

import sys
from dataclasses import replace

from pondstack.rpc.wire import Backing
from pondstack_agent import cmd
from pondstack_agent.drivers import emulated

NODE = 63
"""No host has that many."""


class StandInPool(emulated.EmulatedHostPool):
    """An emulated device whose memory is said to be a node, with nobody's pages on it."""

    def backings(self, allocation_uuid: str) -> tuple[Backing, ...]:
        """Return them as if they were memory of the node."""
        return tuple(replace(item, host_node=NODE) for item in super().backings(allocation_uuid))

    def vacate(self, allocation_uuid: str) -> None:
        """Do nothing: no guest of a fake compute holds anything."""


if __name__ == "__main__":
    emulated.EmulatedHostPool = StandInPool  # type: ignore[misc]  # what the entry point of the driver leads to
    sys.exit(cmd.main())
