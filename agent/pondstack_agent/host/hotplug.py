"""Memory goes offline, or somebody reads which nodes the kernel's memory tiers have: never both at once.

A reader of `memory_tierN/nodelist` waits for the lock that the kernel holds while it takes the last node out of a tier,
and the kernel waits there until nobody reads that file: both wait for ever, and with them all memory hotplug until the
next reboot (seen with 6.12; `nodelist_show` and `clear_node_memory_tier` of mm/memory-tiers.c).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Hotplug:
    """Keeps the two apart. Memory may need minutes to go offline, so readers are turned away, and never wait."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._offlining = self._reading = 0

    @contextmanager
    def offlining(self) -> Iterator[None]:
        """Take memory offline, once those that read now have read; several may at once."""
        with self._changed:
            self._offlining += 1
            self._changed.wait_for(lambda: not self._reading)
        try:
            yield
        finally:
            with self._changed:
                self._offlining -= 1

    @contextmanager
    def reading(self) -> Iterator[bool]:
        """Read the tiers; yields False, and nothing may be read, while memory goes offline."""
        with self._changed:
            allowed = not self._offlining
            self._reading += allowed
        try:
            yield allowed
        finally:
            with self._changed:
                self._reading -= allowed
                self._changed.notify_all()


HOTPLUG = Hotplug()
"""The one of this host's kernel."""
