"""Idle threads of futurist's executors that sleep, as in our own processes, in a test that has Nova in its process.

Such a test has two hundred of them, each of which wants the interpreter's lock to look whether it is to end.
"""

import fixtures

from pondstack.idle_threads import LOOK_SECONDS, let_sleep

__all__ = ["LOOK_SECONDS", "IdleThreads"]


class IdleThreads(fixtures.Fixture):
    """Lets them sleep until the test ends; those that are left then look as before.

    Nova's base sets the pause of its own tests: LOOK_SECONDS is to be set after it.
    """

    def _setUp(self) -> None:
        self.addCleanup(let_sleep())
