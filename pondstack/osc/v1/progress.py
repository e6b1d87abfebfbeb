"""What goes on in the background, such as a plan: commands with --wait follow it, with its progress on stderr."""

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from osc_lib import exceptions

from pondstack.domain.printable import escaped
from pondstack.osc.client import ApiError, Document, MemoryClient

POLL_SECONDS = 0.5


class Progress(ABC):
    """One thing that goes on. `told`: what the API said of it last."""

    def __init__(self, client: MemoryClient, told: Document) -> None:
        self.client, self.told = client, told
        self._shown = ""

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is, ahead of its text."""

    @property
    @abstractmethod
    def command(self) -> str:
        """The command, after `openstack memory`, that shows how it went on."""

    @abstractmethod
    def ask(self) -> Document:
        """Ask the API for it."""

    @abstractmethod
    def text(self) -> str:
        """Return how far it is."""

    def until(self, reached: Callable[[Document], bool], timeout_seconds: float) -> Document:
        """Follow it until it has come so far, and return it; raises CommandError where it has not in time."""
        ends = time.monotonic() + timeout_seconds
        pause = threading.Event()
        self._show()
        while not reached(self.told):
            if time.monotonic() >= ends:
                raise exceptions.CommandError(
                    f"{self}, for more than {timeout_seconds:g} s, and goes on; look at `openstack memory "
                    f"{self.command}`"
                )
            pause.wait(min(POLL_SECONDS, max(ends - time.monotonic(), 0.0)))
            self._look()
            self._show()
        return self.told

    def check(self, good: bool) -> Document:
        """Return it where that is how it should have ended; raises CommandError."""
        if not good:
            raise exceptions.CommandError(escaped(f"{self.name} ended as {self.text()}"))
        return self.told

    def __str__(self) -> str:
        return escaped(f"{self.name}: {self.text()}")

    def _look(self) -> None:
        """Ask again; while nobody can say, it is as it was."""
        try:
            self.told = self.ask()
        except ApiError as error:
            if error.status != 503:
                raise

    def _show(self) -> None:
        if str(self) != self._shown:
            print(self, file=sys.stderr, flush=True)
        self._shown = str(self)
