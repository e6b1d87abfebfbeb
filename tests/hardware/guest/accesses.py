"""The agent's access scans in a host, of all guests there."""

import errno
import os
import signal
import threading
import time
from pathlib import Path

from pondstack_agent.records import Records
from pondstack_agent.telemetry.access import AccessLook
from pondstack_agent.telemetry.damon import ADMIN, Damon
from pondstack_agent.telemetry.outbox import Outbox
from pondstack_rack.wait import Deadline, wait_until

STATE = Path("/var/lib/pondstack/damon")
KILL_SECONDS = 120.0


class Scans:
    """Scans that may cost what they like, with a window of so many seconds for guests under KVM."""

    def __init__(self, window_seconds: float) -> None:
        self._outbox = Outbox(time.monotonic)
        self._damon = Damon(Records(STATE), window_seconds, threading.Event())
        self._look = AccessLook(self._outbox, 3600.0, 100.0, self._damon)

    def scan(self) -> dict[str, float | str]:
        """Return metric and node ("hot_mib 1"; of the whole guest: "hot_mib") to its value, or why there is none."""
        self._look.run()
        return {
            item.metric if item.node is None else f"{item.metric} {item.node}": (
                item.reason if item.mean is None else item.mean
            )
            for item in self._outbox.take()
        }

    def scan_killed(self) -> None:
        """Scan in a process of its own that is killed while DAMON watches."""
        child = os.fork()
        if child == 0:
            try:
                self._look.run()
            finally:
                os._exit(1)
        # Not by DAMON's attributes: who watches is at them nearly all the time, and the kernel lets in one at a time.
        begun = wait_until(_watching, KILL_SECONDS, 0.2)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if not begun:
            raise TimeoutError("DAMON was not begun")

    def damon(self) -> str:
        """Return what DAMON does now, by the kernel's word; "" when it is nobody's."""
        state, deadline = Path("/", ADMIN, "0/state"), Deadline(KILL_SECONDS)
        while True:
            try:
                return state.read_text().strip()
            except FileNotFoundError:
                return ""
            except OSError as error:
                # A killed scan may have left the kernel waiting for DAMON's next look, with the lock of all of it.
                if error.errno != errno.EBUSY or deadline.over:
                    raise
            deadline.pause()


def _watching() -> bool:
    """Return whether a thread of DAMON runs."""
    return any(_command(path).startswith("kdamond.") for path in Path("/proc").glob("[0-9]*/comm"))


def _command(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
