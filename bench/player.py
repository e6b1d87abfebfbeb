"""Plays requests against a cloud: arrivals and departures by a compressed clock, so many operations in flight."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from keystoneauth1.exceptions import ClientException

from bench.trace import Request
from bench.watch import Watcher

ANSWER_SECONDS = 300.0
NO_HOST = "No valid host"


class Target(Protocol):
    """What the player needs of a cloud."""

    def boot(self, request: Request, number: int) -> str:
        """Ask for a server and return its id."""

    def delete(self, server: str) -> None:
        """Ask for its deletion."""

    def fault(self, server: str) -> str:
        """Return why it is in ERROR."""

    def place(self, server: str) -> tuple[str, int]:
        """Return its host, and how much pool memory Placement granted it."""


@dataclass(slots=True)
class Outcome:
    """What became of one request. `reason` is empty when it was placed and is gone again.

    `asked`, `seen`, `leaving`, `gone`: when it was asked for, seen started or refused, told to leave, and seen gone,
    by time.monotonic().
    """

    request: Request
    server: str = ""
    placed: bool = False
    reason: str = ""
    host: str = ""
    pool_mib: int = 0
    asked: float | None = None
    seen: float | None = None
    leaving: float | None = None
    gone: float | None = None

    @property
    def boot_seconds(self) -> float | None:
        """How long its start took, of one that was placed."""
        return self.seen - self.asked if self.placed and self.seen is not None and self.asked is not None else None

    @property
    def delete_seconds(self) -> float | None:
        """How long its end took, of one that was placed."""
        return self.gone - self.leaving if self.placed and self.gone is not None and self.leaving is not None else None

    @property
    def rejected(self) -> bool:
        """Whether the scheduler found no room, which is an answer; any other failure is a defect."""
        return not self.placed and NO_HOST in self.reason

    @property
    def failed(self) -> bool:
        """Whether something broke."""
        return bool(self.reason) and not self.rejected


class Player:
    """Runs the requests; `in_flight` boots and deletions at most are under way at once."""

    def __init__(
        self,
        target: Target,
        watcher: Watcher,
        *,
        in_flight: int,
        speed: float,
        show: Callable[[int, str], None],
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._target, self._watcher, self._speed, self._show = target, watcher, speed, show
        self._in_flight, self._answer = in_flight, answer_seconds
        self._changed = threading.Condition()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._running = self._living = self._done = self._arriving = 0
        self._crash: BaseException | None = None
        self.outcomes: list[Outcome] = []

    def play(self, requests: Sequence[Request]) -> list[Outcome]:
        """Play all requests to their end; after the last arrival, those that live on depart at once."""
        self.outcomes = [Outcome(request) for request in requests]
        begun = time.monotonic()
        self._arriving = len(requests)
        for number, outcome in enumerate(self.outcomes):
            self._plan(begun + outcome.request.arrival_seconds / self._speed, self._booting(outcome, number))
        with ThreadPoolExecutor(self._in_flight, thread_name_prefix="player") as pool:
            try:
                while (action := self._next()) is not None:
                    pool.submit(action).add_done_callback(self._finished)
                    self._show(self._done, f"{self._living} alive, {self._running} in flight")
            except BaseException:
                self._watcher.stop()  # who waits for a server need not be waited for
                raise
        return self.outcomes

    def _plan(self, due: float, action: Callable[[], None]) -> None:
        with self._changed:
            heapq.heappush(self._agenda, (due, next(self._numbers), action))
            self._changed.notify_all()

    def _next(self) -> Callable[[], None] | None:
        """Wait for the next action that is due and has room; None when all is over."""
        with self._changed:
            while self._agenda or self._running:
                if self._crash:
                    raise self._crash
                wait: float | None = None
                if self._agenda and self._running < self._in_flight:
                    wait = self._agenda[0][0] - time.monotonic()
                    if wait <= 0 or not self._arriving:
                        self._running += 1
                        return heapq.heappop(self._agenda)[2]
                self._changed.wait(1.0 if wait is None else min(wait, 1.0))
                self._show(self._done, f"{self._living} alive, {self._running} in flight")
            if self._crash:
                raise self._crash
            return None

    def _finished(self, future: "Future[None]") -> None:
        with self._changed:
            self._running -= 1
            self._crash = self._crash or future.exception()
            self._changed.notify_all()

    def _booting(self, outcome: Outcome, number: int) -> Callable[[], None]:
        def boot() -> None:
            try:
                self._boot(outcome, number)
            except (ClientException, TimeoutError) as error:
                outcome.reason = f"boot: {_first_line(error)}"
            with self._changed:
                self._arriving -= 1
                self._living += outcome.placed
            if outcome.server:
                stay = outcome.request.lifetime_seconds / self._speed if outcome.placed else 0.0
                self._plan(time.monotonic() + stay, self._deleting(outcome))
            else:
                self._done += 1

        return boot

    def _boot(self, outcome: Outcome, number: int) -> None:
        outcome.asked = time.monotonic()
        outcome.server = self._target.boot(outcome.request, number)
        status, outcome.seen = self._watcher.wait(outcome.server, {"ACTIVE", "ERROR"}, self._answer)
        if status == "ERROR":
            outcome.reason = self._target.fault(outcome.server)
            return
        outcome.placed = True
        outcome.host, outcome.pool_mib = self._target.place(outcome.server)

    def _deleting(self, outcome: Outcome) -> Callable[[], None]:
        def delete() -> None:
            outcome.leaving = time.monotonic()
            try:
                self._target.delete(outcome.server)
                _, outcome.gone = self._watcher.wait(outcome.server, {"DELETED"}, self._answer)
            except (ClientException, TimeoutError) as error:
                outcome.reason = f"delete: {_first_line(error)}"
            with self._changed:
                self._living -= outcome.placed
                self._done += 1

        return delete


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
