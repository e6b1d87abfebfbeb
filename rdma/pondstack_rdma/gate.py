"""A gate that threads pass while a resource is open, and that closes behind the last of them.

Without it, one thread's close would hand a descriptor or mapping to somebody else while another thread uses it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pondstack_rdma.errors import TransportGone


class Gate:
    """Counts who is inside. `what` names the resource in errors."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._changed = threading.Condition()
        self._inside = 0
        self._shut = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Be inside for a block; raises TransportGone once the gate was shut."""
        with self._changed:
            if self._shut:
                raise TransportGone(f"{self._what} is closed")
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                if self._shut and not self._inside:
                    self._changed.notify_all()

    def shut(self) -> bool:
        """Let nobody in any more; True for the one caller that has to close the resource, after `wait_empty`."""
        with self._changed:
            first, self._shut = not self._shut, True
            return first

    def wait_empty(self) -> None:
        """Return when the last one has left."""
        with self._changed:
            self._changed.wait_for(lambda: not self._inside)
