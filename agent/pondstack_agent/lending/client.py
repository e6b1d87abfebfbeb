"""The agent's end of its lender's process: what it can be asked."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pondstack.domain.errors import BadRequest, HostUnusable, Unavailable
from pondstack.domain.lending import LenderKind
from pondstack_agent.helper.client import HelperClient, HelperGone, HelperSilent
from pondstack_agent.lending.model import Holding
from pondstack_agent.lending.program import LENDER

MAX_INDEXES = 4096
"""Buffers in one request: keys of so many fit into one message."""


@dataclass(frozen=True)
class Command:
    """How the process is started. `launcher`: words before it, such as systemd-run --scope."""

    host: str
    transport: str
    options: Mapping[str, str] = field(default_factory=dict)
    buffer_mib: int = 64
    launcher: str = ""

    def words(self) -> list[str]:
        """Return the words of the command line that are the lender's own."""
        words = ["--host", self.host, "--transport", self.transport, "--buffer-mib", str(self.buffer_mib)]
        return words + [word for item in self.options.items() for word in ("--option", "=".join(item))]


class LenderClient(HelperClient):
    """Asks the lender's process of one folder; one request at a time. Raises HelperGone, HelperSilent."""

    def __init__(self, folder: Path, command: Command, timeout_seconds: float) -> None:
        super().__init__(LENDER, folder, command.launcher, timeout_seconds)
        self._command = command
        self._lock = threading.Lock()

    @property
    def buffer_mib(self) -> int:
        """The size of a buffer as configured; what is lent already may have another one."""
        return self._command.buffer_mib

    def start(self) -> None:
        """Start the process where none runs; raises Unavailable with its reason."""
        self._start(*self._command.words())

    def hold(self, seconds: float | None = None) -> Holding:
        """Return what the process has; Holding() when none runs. Raises HelperSilent, after `seconds` if given."""
        try:
            return Holding.from_wire(self._ask("hold", seconds))
        except HelperGone:
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
        return _joined(
            self._ask_keys("export", generations, incarnation=incarnation, indexes=part, borrower=borrower)
            for part in _parts(indexes)
        )

    def escrow(
        self, incarnation: str, indexes: Sequence[int], borrower: str, generations: Mapping[int, int]
    ) -> dict[str, Any]:
        """Make keys for one of several borrowers, all or none of each 4096; without `indexes` let it in only.

        Raises NotFound, InUse, Conflict, Unavailable.
        """
        return self._ask_several("escrow", incarnation, indexes, borrower, generations)

    def share(
        self, incarnation: str, indexes: Sequence[int], borrower: str, generations: Mapping[int, int]
    ) -> dict[str, Any]:
        """Make keys more of buffers in use, all or none of each 4096; raises as escrow."""
        return self._ask_several("share", incarnation, indexes, borrower, generations)

    def _ask_several(
        self, verb: str, incarnation: str, indexes: Sequence[int], borrower: str, generations: Mapping[int, int]
    ) -> dict[str, Any]:
        """Ask for keys that are not the only ones of their buffers."""
        try:
            return _joined(
                self._ask(
                    verb,
                    incarnation=incarnation,
                    borrower=borrower,
                    indexes=part,
                    generations={str(index): generations[index] for index in part},
                )
                for part in list(_parts(indexes)) or [[]]
            )
        except BadRequest as error:
            former = HostUnusable if verb == "share" else Unavailable  # for an escrow, somebody comes again
            raise former(f"the lender's process is of a former release, and knows no {verb}: {error}") from error

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
        self._await_end("told to end")

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
            raise HelperSilent(f"the lender's process has been busy with another request for {seconds:g} s")
        try:
            return super()._ask(verb, seconds, **arguments)
        finally:
            self._lock.release()


def _joined(answers: Iterable[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"ticket": {}, "keys": {}}
    for answer in answers:
        found = {"ticket": answer["ticket"], "keys": found["keys"] | answer["keys"]}
    return found


def _parts(indexes: Sequence[int]) -> Iterator[list[int]]:
    whole = list(indexes)
    return (whole[at : at + MAX_INDEXES] for at in range(0, len(whole), MAX_INDEXES))
