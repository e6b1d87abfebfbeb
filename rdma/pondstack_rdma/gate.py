"""A gate that threads pass while a resource is open, and that closes behind the last of them.

Without it, one thread's close would hand a descriptor or mapping to somebody else while another thread uses it.
"""

import threading
from types import TracebackType

from pondstack_rdma.errors import TransportGone


class Gate:
    """Counts who is inside: `with gate:`, which raises TransportGone once it was shut. `what` names it in errors."""

    def __init__(self, what: str) -> None:
        self._what = what
        # Every access passes two gates: no generator, and no condition until somebody waits.
        self._lock = threading.Lock()
        self._inside = 0
        self._shut = False
        self._empty = threading.Event()

    def __enter__(self) -> None:
        with self._lock:
            if self._shut:
                raise TransportGone(f"{self._what} is closed")
            self._inside += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._inside -= 1
            if self._shut and not self._inside:
                self._empty.set()

    def shut(self) -> bool:
        """Let nobody in any more; True for the one caller that has to close the resource, after `wait_empty`."""
        with self._lock:
            first, self._shut = not self._shut, True
            if not self._inside:
                self._empty.set()
            return first

    def wait_empty(self) -> None:
        """Return when the last one has left; of a gate that was shut."""
        self._empty.wait()
