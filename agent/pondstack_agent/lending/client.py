"""The agent's end of its lender's process: starts it, finds it again, asks it."""

import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.domain.lending import LenderKind
from pondstack_agent.helper.lock import lock_held
from pondstack_agent.lending import messages
from pondstack_agent.lending.model import Holding

_PAUSE_SECONDS = 0.01


class LenderGone(Unavailable):
    """No lender's process runs: nothing is lent."""


class LenderSilent(Unavailable):
    """The lender's process is there and does not answer: frozen, or overloaded."""


@dataclass(frozen=True)
class Command:
    """How the process is started. `launcher`: words before it, such as systemd-run --scope."""

    host: str
    transport: str
    options: Mapping[str, str] = field(default_factory=dict)
    buffer_mib: int = 64
    launcher: str = ""

    def words(self, folder: Path) -> list[str]:
        """Return the command line."""
        options = [word for item in self.options.items() for word in ("--option", "=".join(item))]
        own = [sys.executable, "-m", "pondstack_agent.lending.process", "--folder", str(folder), "--host", self.host]
        own += ["--transport", self.transport, "--buffer-mib", str(self.buffer_mib)]
        return shlex.split(self.launcher) + own + options


class LenderClient:
    """Asks the lender's process of one folder; one request at a time. Raises LenderGone, LenderSilent."""

    def __init__(self, folder: Path, command: Command, timeout_seconds: float) -> None:
        self._folder = folder
        self._command = command
        self._seconds = timeout_seconds
        self._lock = threading.Lock()
        self._pause = threading.Event()

    @property
    def buffer_mib(self) -> int:
        """The size of a buffer as configured; what is lent already may have another one."""
        return self._command.buffer_mib

    def start(self) -> None:
        """Start the process where none runs; raises Unavailable with its reason."""
        words = self._command.words(self._folder)
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=self._seconds, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"the lender's process does not start: {error}; see [lending] launcher") from error
        if done.returncode:
            raise Unavailable(f"the lender's process does not start: {done.stderr.strip()[-500:]}")

    def hold(self, seconds: float | None = None) -> Holding:
        """Return what the process has; Holding() when none runs. Raises LenderSilent, after `seconds` if given."""
        try:
            return Holding.from_wire(self._ask("hold", seconds))
        except LenderGone:
            return Holding()

    def become(self, incarnation: str, kind: LenderKind) -> None:
        """Note how the host serves."""
        self._ask("become", incarnation=incarnation, kind=str(kind))

    def register(self, incarnation: str) -> int:
        """Take memory for one more buffer, and return its number; raises Unavailable when there is none."""
        return int(self._ask("register", incarnation=incarnation)["index"])

    def export(
        self, incarnation: str, indexes: Sequence[int], borrower: str, generations: Mapping[int, int] | None = None
    ) -> dict[str, Any]:
        """Give a borrower keys; raises NotFound, InUse, Conflict, Unavailable. All or none of each 4096."""
        found: dict[str, Any] = {"ticket": {}, "keys": {}}
        for part in _parts(indexes):
            answer = self._ask_keys("export", generations, incarnation=incarnation, indexes=part, borrower=borrower)
            found = {"ticket": answer["ticket"], "keys": found["keys"] | answer["keys"]}
        return found

    def revoke(
        self, incarnation: str, indexes: Sequence[int], generations: Mapping[int, int] | None = None
    ) -> list[int]:
        """End keys, of `generations` up to these; returns the buffers without one."""
        answers = [
            self._ask_keys("revoke", generations, incarnation=incarnation, indexes=part) for part in _parts(indexes)
        ]
        return [index for answer in answers for index in answer["indexes"]]

    def withdraw(self, incarnation: str, indexes: Sequence[int]) -> list[int]:
        """Give memory back to the host; returns what is gone. Raises InUse."""
        answers = [self._ask("withdraw", incarnation=incarnation, indexes=part) for part in _parts(indexes)]
        return [index for answer in answers for index in answer["indexes"]]

    def end(self, incarnation: str) -> None:
        """End the process, which holds nothing, and see that it is gone; raises InUse when it holds something."""
        self._ask("end", incarnation=incarnation)
        ends = time.monotonic() + self._seconds
        while lock_held(self._folder):  # until then neither a look nor a start would do
            if time.monotonic() > ends:
                raise LenderSilent("the lender's process was told to end and is still there; see whether it is frozen")
            self._pause.wait(_PAUSE_SECONDS)

    def _ask_keys(self, verb: str, generations: Mapping[int, int] | None, **arguments: Any) -> dict[str, Any]:
        """Ask what is about keys of certain generations; raises as _ask."""
        if generations is None:
            return self._ask(verb, **arguments)
        wanted = {str(index): generations[index] for index in arguments["indexes"] if index in generations}
        try:
            return self._ask(verb, generations=wanted, **arguments)
        except BadRequest:  # a process from before an upgrade: it knows no generations
            return self._ask(verb, **arguments)

    def _ask(self, verb: str, seconds: float | None = None, **arguments: Any) -> dict[str, Any]:
        seconds = self._seconds if seconds is None else seconds
        if not self._lock.acquire(timeout=seconds):
            raise LenderSilent(f"the lender's process has been busy with another request for {seconds:g} s")
        try:
            answer = self._exchange({"verb": verb, **arguments}, seconds)
        finally:
            self._lock.release()
        error = messages.failed(answer)
        if error is not None:
            raise error
        return answer

    def _exchange(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """A connection per request: there is no state to lose between two of them."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as link:
                link.settimeout(seconds)
                self._connect(link)
                messages.send(link, request, seconds)
                return messages.receive(link, seconds)
        except (BlockingIOError, TimeoutError) as error:
            raise LenderSilent(
                f"the lender's process does not answer within {seconds:g} s; see whether it is frozen"
            ) from error
        except (OSError, ValueError) as error:
            raise LenderSilent(f"the lender's process cannot be asked: {error}") from error

    def _connect(self, link: socket.socket) -> None:
        """Connect; raises LenderGone only when the process has ended: its keys would be called dead."""
        try:
            with messages.address(self._folder) as path:
                link.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            if lock_held(self._folder):
                raise  # it starts or ends at this moment, or its socket was removed
            raise LenderGone(f"no lender's process runs in {self._folder}: this host lends nothing") from None


def _parts(indexes: Sequence[int]) -> Iterator[list[int]]:
    whole = list(indexes)
    return (whole[at : at + messages.MAX_INDEXES] for at in range(0, len(whole), messages.MAX_INDEXES))
