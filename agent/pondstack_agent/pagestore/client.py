"""The agent's end of a page store: starts its process, finds it again, asks it, ends it."""

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pondstack.devices.atomic_files import sync_folder
from pondstack.domain.errors import Unavailable
from pondstack_agent.helper.lock import lock_held, pid_of
from pondstack_agent.lending import messages
from pondstack_agent.pagestore.process import LOCK
from pondstack_agent.pagestore.service import SOCKET
from pondstack_agent.pagestore.settings import FILE, StoreSettings

_PAUSE_SECONDS = 0.01


class StoreGone(Unavailable):
    """No process of this page store runs: it uses no buffers."""


class StoreClient:
    """Of one folder. Raises StoreGone, and Unavailable when the process does not answer."""

    def __init__(self, folder: Path, launcher: str, timeout_seconds: float) -> None:
        self.folder = folder
        self._launcher, self._seconds = launcher, timeout_seconds
        self._pause = threading.Event()

    @property
    def runs(self) -> bool:
        """Whether its process lives."""
        return lock_held(self.folder, LOCK)

    @property
    def pid(self) -> int | None:
        """Of its process; None when none runs."""
        return pid_of(self.folder, LOCK) if self.runs else None

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
        if self.runs:
            return
        words = [sys.executable, "-m", "pondstack_agent.pagestore.process", "--folder", str(self.folder)]
        try:
            done = subprocess.run(
                shlex.split(self._launcher) + words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=self._seconds,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"the page store does not start: {error}; see [page_store] launcher") from error
        if done.returncode:
            raise Unavailable(f"the page store does not start: {done.stderr.strip()[-500:]}")

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
        return self._indexes(
            "leave", lender=lender, numbers=named, leave_seconds=leave_seconds, wait_seconds=wait_seconds
        )

    def lost(self, lender: str) -> None:
        """Have it look whether a lender answers."""
        self._ask("lost", lender=lender)

    def remove(self, mirror: Path) -> None:
        """End its process, and remove what it kept, mirror included: its consumer has no use for it any more."""
        if self.folder.exists():
            if self.runs:
                # Not asked: it would flush a mirror that nobody reads, or be frozen.
                os.kill(pid_of(self.folder, LOCK), signal.SIGKILL)
                self._await_end()
            shutil.rmtree(self.folder)
            sync_folder(self.folder.parent)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            mirror.unlink()

    def _await_end(self) -> None:
        ends = time.monotonic() + self._seconds
        while self.runs:
            if time.monotonic() > ends:
                raise Unavailable(f"the page store in {self.folder} was killed and is still there; see its process")
            self._pause.wait(_PAUSE_SECONDS)

    def _indexes(self, verb: str, **arguments: Any) -> list[int]:
        found: Sequence[int] = self._ask(verb, **arguments)["indexes"]
        return list(found)

    def _ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        seconds = self._seconds + float(arguments.get("wait_seconds", 0.0))
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as link:
                link.settimeout(seconds)
                with messages.address(self.folder, SOCKET) as path:
                    link.connect(path)
                messages.send(link, {"verb": verb, **arguments}, seconds)
                answer = messages.receive(link, seconds)
        except (OSError, ValueError) as error:
            if not self.folder.exists() or not self.runs:
                raise StoreGone(f"no process of the page store in {self.folder} runs") from error
            raise Unavailable(f"the page store in {self.folder} does not answer: {error}") from error
        failure = messages.failed(answer)
        if failure is not None:
            raise failure
        return answer
