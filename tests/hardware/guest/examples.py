"""An object for the tests of the channel itself."""

import os
import signal
import threading

from pondstack.domain.errors import DeviceFailed
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Backing


class Example:
    """Does what a driver could do, without a device."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._released = threading.Event()

    def back(self, extents: tuple[Extent, ...]) -> tuple[Backing, ...]:
        """Return one backing per extent."""
        return tuple(Backing("node", item.count * 1024, path=self.path, host_node=1) for item in extents)

    def fail(self) -> None:
        """Raise one of pondstack's errors."""
        raise DeviceFailed("mem0 is gone; replace it")

    def fail_otherwise(self) -> None:
        """Raise an error that is none of pondstack's."""
        raise ZeroDivisionError("on purpose")

    def wait(self) -> bool:
        """Wait for `release`, in another thread."""
        return self._released.wait(60)

    def release(self) -> None:
        """End `wait`."""
        self._released.set()

    def die(self) -> None:
        """End as a crash does, in the middle of a call."""
        os.kill(os.getpid(), signal.SIGKILL)
