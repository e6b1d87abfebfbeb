"""The message bus of a history: calls that get lost, late, doubled or out of order, and who may hear whom."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import oslo_messaging

from pondstack.domain.errors import PondError

from .kernel import Process, Scheduler, Task

Handler = Callable[[str, Mapping[str, Any]], Any]

LATE_SECONDS = 4.0
"""So long after its sender has given up a request may still be delivered.

oslo.messaging has a message live for the whole timeout of its call, but gives up when the call monitor misses a sign of
life (10 s of 60 s, for agents); and nothing expires that a paused consumer has in its socket.
"""


@dataclass(eq=False, slots=True)
class Server:
    """A consumer of a topic. `asleep`: how many messages a paused process has swallowed."""

    process: Process
    handle: Handler
    asleep: int = 0


@dataclass(slots=True)
class Window:
    """A time in which messages of somebody ("": of all) meet a fault. `longest`: the most seconds of a delay."""

    kind: str
    who: str
    until: float
    share: float
    longest: float = 3.0


@dataclass(slots=True)
class Message:
    """One request on its way."""

    topic: str
    method: str
    arguments: Mapping[str, Any]
    sender: str
    task: Task | None
    turn: int
    expires: float


@dataclass(slots=True)
class Topic:
    """Who consumes it, and what waits for a consumer."""

    servers: list[Server] = field(default_factory=list)
    waiting: deque[Message] = field(default_factory=deque)


class Network:
    """Everybody's way to everybody.

    `cut`: names of processes that reach nobody, not even the database; `cut_from_bus`: those that reach nothing else.
    """

    def __init__(self, scheduler: Scheduler, seed: int) -> None:
        self._scheduler = scheduler
        self._rng = Random(f"{seed}:network")
        self._topics: dict[str, Topic] = {}
        self._next = 0
        self.windows: list[Window] = []
        self.cut: dict[str, float] = {}
        self.cut_from_bus: dict[str, float] = {}

    def serve(self, topic: str, process: Process, handle: Handler) -> Server:
        """Have a process consume a topic, until it stops or dies."""
        server = Server(process, handle)
        entry = self._topics.setdefault(topic, Topic())
        entry.servers.append(server)
        process.on_death.append(lambda: self.leave(topic, server))
        waiting, entry.waiting = entry.waiting, deque()
        for message in waiting:
            self._deliver(message)
        return server

    def leave(self, topic: str, server: Server) -> None:
        """Stop consuming."""
        servers = self._topics[topic].servers
        if server in servers:
            servers.remove(server)

    def call(self, topic: str, method: str, arguments: Mapping[str, Any], timeout: float) -> Any:
        """Call and wait for the answer; raises MessagingTimeout, or what the other side raised."""
        scheduler = self._scheduler
        task = scheduler.current()
        assert task is not None
        sender = task.process.name
        message = Message(topic, method, arguments, sender, task, task.turn, scheduler.now + timeout)
        for delay in self._fates(sender, topic):
            scheduler.call_at(scheduler.now + delay, lambda: self._deliver(message, underway=True))
        found = scheduler.wait(timeout)
        if found is None:
            raise oslo_messaging.MessagingTimeout(f"no answer to {method} from {topic}")
        fine, answer = found
        if fine:
            return answer
        raise answer

    def reaches(self, name: str) -> bool:
        """Return whether a process is not cut off now."""
        return self.cut.get(name, 0.0) <= self._scheduler.now

    def on_bus(self, name: str) -> bool:
        """Return whether messages of and to a process pass now."""
        return self.reaches(name) and self.cut_from_bus.get(name, 0.0) <= self._scheduler.now

    def _fates(self, sender: str, receiver: str) -> list[float]:
        """Return after how many seconds a message arrives: never, once or more often."""
        if not (self.on_bus(sender) and self.on_bus(receiver)):
            self._scheduler.faults["message lost"] += 1
            return []
        delay = 0.0005 + 0.004 * self._rng.random()
        delays = [delay]
        for window in self.windows:
            if window.until <= self._scheduler.now or window.who not in ("", sender, receiver):
                continue
            if self._rng.random() >= window.share:
                continue
            self._scheduler.faults[f"message {_PAST[window.kind]}"] += 1
            if window.kind == "lose":
                return []
            if window.kind == "delay":
                delays[0] += window.longest * self._rng.random()
            else:
                delays.append(delay + 4.0 * self._rng.random())
        return delays

    def _deliver(self, message: Message, *, underway: bool = False) -> None:
        """Hand a message to a consumer; one that was `underway` has not expired, however late it is."""
        entry = self._topics.setdefault(message.topic, Topic())
        if not underway and self._scheduler.now > message.expires + LATE_SECONDS:
            return
        server = self._choose(entry)
        if server is None:
            entry.waiting.append(message)
            return
        if server.process.paused_until > self._scheduler.now:
            server.asleep += 1
            self._scheduler.call_at(server.process.paused_until, lambda: setattr(server, "asleep", 0))
        self._scheduler.spawn(server.process, self._serve, server, message)

    def _choose(self, entry: Topic) -> Server | None:
        """Return a consumer in turn; a paused one takes a single message (prefetch of one)."""
        for _ in entry.servers:
            self._next = (self._next + 1) % len(entry.servers)
            server = entry.servers[self._next]
            paused = server.process.paused_until > self._scheduler.now
            if server.process.alive and not (paused and server.asleep) and self.on_bus(server.process.name):
                return server
        return None

    def _serve(self, server: Server, message: Message) -> None:
        try:
            answer: tuple[bool, Any] = True, server.handle(message.method, message.arguments)
        except PondError as error:
            answer = False, type(error)(error.message)
        fates = self._fates(server.process.name, message.sender)
        if self._scheduler.tracing:
            self._scheduler.note(f"{message.method} of {message.sender} answered {_short(answer)}")
        if fates and message.task is not None:
            self._scheduler.wake(message.task, message.turn, answer, after=fates[0])


_PAST = {"lose": "lost", "delay": "delayed", "duplicate": "duplicated"}


def _short(answer: tuple[bool, Any]) -> str:
    fine, value = answer
    return str(value)[:100] if fine else f"{type(value).__name__}: {str(value)[:100]}"
