"""Hold the leading controller at a moment that the ledger tells: steps last for some tenths of a second.

The leader is stopped (SIGSTOP) as soon as the ledger says that the moment is there, the ledger is read once more, and
only if it says the same a death is one at this moment.
"""

import os
import signal
import threading
import time
from collections.abc import Callable

from tests.robustness.mitigations.rack import Processes

MEET_SECONDS = 240.0
LOOK_SECONDS = 0.002
SETTLE_SECONDS = 0.05
"""What a leader that is stopped had sent is committed by then."""


def hold_leader(
    processes: Processes, look: Callable[[], bool | None], run_seconds: float = 0.0
) -> tuple[str, int] | None:
    """Stop the leader at a moment; returns its service and process, None: the moment was not met.

    `look` tells whether it is there, None: it does not come any more. At first it may last for `run_seconds`.
    """
    leader = processes.leader()
    deadline = time.monotonic() + MEET_SECONDS
    while time.monotonic() < deadline:
        there = look()
        if there is None:
            return None
        if not there:
            threading.Event().wait(LOOK_SECONDS)
            continue
        if run_seconds:
            threading.Event().wait(run_seconds)
            run_seconds = 0.0
        else:
            os.kill(leader[1], signal.SIGSTOP)
            threading.Event().wait(SETTLE_SECONDS)
            if look() and processes.leader() == leader:
                return leader
            let_go(leader[1])
        leader = processes.leader()
    return None


def let_go(pid: int) -> None:
    """Have a leader go on that was stopped; one that was killed meanwhile is no error."""
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return
