"""The agent's end of a page store: what its process can be asked, and how it begins and ends."""

import contextlib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pondstack.devices.atomic_files import sync_folder
from pondstack_agent.helper.client import HelperClient
from pondstack_agent.pagestore.program import PAGE_STORE
from pondstack_agent.pagestore.settings import FILE, StoreSettings


class StoreClient(HelperClient):
    """Of one folder. Raises HelperGone, when it uses no buffers therefore, and HelperSilent."""

    def __init__(self, folder: Path, launcher: str, timeout_seconds: float) -> None:
        super().__init__(PAGE_STORE, folder, launcher, timeout_seconds)

    @property
    def pid(self) -> int | None:
        """Of its process; None when none runs."""
        return PAGE_STORE.pid(self.folder) if self.runs else None

    @property
    def made(self) -> bool:
        """Whether it is written down what its process is to be."""
        return (self.folder / FILE).exists()

    def make(self, settings: StoreSettings) -> None:
        """Write down what its process is to be; once."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        settings.write(self.folder)

    def start(self) -> None:
        """Start its process where none runs; raises Unavailable with its reason."""
        if not self.runs:
            self._start()

    def view(self) -> dict[str, Any]:
        """Return what it has; see PageStore.view."""
        return self._ask("view")

    def arrive(self, lender: str, ticket: Mapping[str, Any], keys: Mapping[int, Mapping[str, Any]]) -> list[int]:
        """Have it use buffers; returns those that it does not refuse as given up."""
        named = {str(index): dict(key) for index, key in keys.items()}
        return self._indexes("arrive", lender=lender, ticket=dict(ticket), keys=named)

    def leave(self, lender: str, numbers: Mapping[int, int], leave_seconds: float, wait_seconds: float) -> list[int]:
        """Have it stop using buffers, by the numbers of their keys; returns those still in use."""
        named = {str(index): number for index, number in numbers.items()}
        waits = {"leave_seconds": leave_seconds, "wait_seconds": wait_seconds}
        return self._indexes("leave", self._seconds + wait_seconds, lender=lender, numbers=named, **waits)

    def lost(self, lender: str) -> None:
        """Have it look whether a lender answers."""
        self._ask("lost", lender=lender)

    def remove(self, mirror: Path) -> None:
        """End its process, and remove what it kept, mirror included: its consumer has no use for it any more."""
        if self.folder.exists():
            if self.runs:
                # Not asked: it would flush a mirror that nobody reads, or be frozen.
                os.kill(PAGE_STORE.pid(self.folder), signal.SIGKILL)
                self._await_end("killed")
            shutil.rmtree(self.folder)
            sync_folder(self.folder.parent)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            mirror.unlink()

    def _indexes(self, verb: str, seconds: float | None = None, **arguments: Any) -> list[int]:
        found: Sequence[int] = self._ask(verb, seconds=seconds, **arguments)["indexes"]
        return list(found)
