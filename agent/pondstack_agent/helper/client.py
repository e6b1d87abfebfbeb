"""The agent's end of a helper: starts its process, finds it again, asks it, waits for its end."""

import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pondstack.domain.errors import Unavailable
from pondstack_agent.helper import messages
from pondstack_agent.helper.program import Program
from pondstack_agent.helper.unix_socket import connect

_PAUSE_SECONDS = 0.01


class HelperGone(Unavailable):
    """No process of the helper runs; what it had is gone with it."""


class HelperSilent(Unavailable):
    """The helper's process is there and does not answer: frozen, or overloaded."""


class HelperClient:
    """Of one helper and folder. `launcher`: words before its command line, such as systemd-run --scope."""

    def __init__(self, program: Program, folder: Path, launcher: str, timeout_seconds: float) -> None:
        self.folder = folder
        self._program, self._launcher, self._seconds = program, launcher, timeout_seconds
        self._process = f"the {program.title}'s process of {folder}"
        self._pause = threading.Event()

    @property
    def runs(self) -> bool:
        """Whether its process lives."""
        return self._program.runs(self.folder)

    def words(self, *options: str) -> list[str]:
        """Return the command line of its process."""
        own = [sys.executable, "-m", self._program.module, "--folder", str(self.folder)]
        return [*shlex.split(self._launcher), *own, *options]

    def _start(self, *options: str) -> None:
        """Start its process, and wait until it serves; raises Unavailable with its reason."""
        try:
            done = subprocess.run(
                self.words(*options),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=self._seconds,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(
                f"{self._process} does not start: {error}; see [{self._program.options}] launcher"
            ) from error
        if done.returncode:
            raise Unavailable(f"{self._process} does not start: {done.stderr.strip()[-500:]}")

    def _ask(self, verb: str, seconds: float | None = None, **arguments: Any) -> dict[str, Any]:
        """Return the answer to a request; raises what the helper raised, HelperGone, HelperSilent.

        HelperGone only when the process has ended, not when its socket cannot be reached: who hears that it has gone
        takes all that it had for lost.
        """
        seconds = self._seconds if seconds is None else seconds
        try:
            # A connection per request: there is no state to lose between two of them.
            with connect(self.folder, self._program.socket, seconds) as link:
                messages.send(link, {"verb": verb, **arguments}, seconds)
                answer = messages.receive(link, seconds)
        except (OSError, ValueError) as error:
            raise self._unanswered(error, seconds) from error
        failure = messages.failed(answer)
        if failure is not None:
            raise failure
        return answer

    def _unanswered(self, error: Exception, seconds: float) -> Unavailable:
        try:
            if not self.runs:
                return HelperGone(f"{self._process} does not run")
        except OSError as unknown:
            error = unknown
        if isinstance(error, BlockingIOError | TimeoutError):
            return HelperSilent(f"{self._process} does not answer within {seconds:g} s; see whether it is frozen")
        return HelperSilent(f"{self._process} cannot be asked: {error}")

    def _await_end(self, told: str) -> None:
        """Wait until its process is gone, which was `told` to end; until then no other one can start."""
        ends = time.monotonic() + self._seconds
        while self.runs:
            if time.monotonic() > ends:
                raise HelperSilent(f"{self._process} was {told} and is still there; see whether it is frozen")
            self._pause.wait(_PAUSE_SECONDS)
