"""Seeded attacks on the border of the bus: messages and answers that nobody honest sends, against honest ones.

Each attack begins with a message that would pass and spoils it in one way. `Attacker.run` counts what was refused and
what was let in; an honest message in between must pass, or the border would only have been shut.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

from pondstack.domain.errors import PondError
from pondstack.rpc.identity.border import Border, Expected
from pondstack.rpc.identity.callers import ANY, RECEIVER, TABLE, Callers
from pondstack.rpc.identity.credential import Authority
from pondstack.rpc.identity.freshness import Freshness
from pondstack.rpc.identity.identity import Identity, Role
from pondstack.rpc.identity.issuer import Issuer
from pondstack.rpc.identity.server import SignedDispatcher
from pondstack.rpc.identity.signature import KEY, Request, Seal
from pondstack.rpc.targets import AGENT_TOPIC

HOSTS = ("h1", "h2", "h3")
WINDOW = 60.0


@dataclass
class Message:
    """A call as it comes out of a queue: where it is read, what it says, and its seal; `border`: its signer."""

    topic: str
    server: str
    verb: str
    version: str
    arguments: dict[str, Any]
    border: Border
    context: dict[str, Any] = field(default_factory=dict)

    def seal(self, to: str | None = None) -> None:
        """Sign it."""
        address = to or f"{self.topic}/{self.server}"
        seal = self.border.sign(Request(address, self.verb, self.version, self.arguments))
        self.context = {KEY: seal.to_wire()}


class Attacker:
    """Has the credential of one host, reads along on the broker, and writes into all queues."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 1000.0
        self._issuer, self._foreign = Issuer.make(), Issuer.make()
        self._authority = Authority([self._issuer.certificate])
        names = [Identity(role, name) for role in Role for name in (*HOSTS, "x")]
        self._borders = {name: self._border(name, self._issuer) for name in names}
        self._strangers = {name: self._border(name, self._foreign) for name in names}
        self._receivers: dict[tuple[str, str], Border] = {}
        self._recorded: list[Message] = []
        self.done = 0
        self.counts: dict[str, Counter[str]] = {}

    def _border(self, identity: Identity, issuer: Issuer) -> Border:
        freshness = Freshness(WINDOW, lambda: self.now)
        return Border(issuer.issue(identity, 1), self._authority, freshness, clock=lambda: self.now)

    # Messages

    def _callers(self) -> tuple[str, str, Callers]:
        topic = self.random.choice(sorted(TABLE))
        verb = self.random.choice(sorted(TABLE[topic]))
        return topic, verb, TABLE[topic][verb]

    def honest(self) -> Message:
        """Return a message that passes."""
        topic, verb, rule = self._callers()
        server, role = self.random.choice(HOSTS), self.random.choice(sorted(rule.roles))
        wanted = rule.roles[role]
        name = server if wanted == RECEIVER else self.random.choice(HOSTS)
        arguments: dict[str, Any] = {"noise": self._value(3)}
        if wanted not in (ANY, RECEIVER):
            *path, last = wanted.split(".")
            place = arguments
            for word in path:
                place = place.setdefault(word, {})
            place[last] = name
        made = Message(topic, server, verb, self._version(), arguments, self._borders[Identity(role, name)])
        made.seal()
        return made

    def _version(self) -> str:
        return f"1.{self.random.randrange(20)}"

    def _value(self, depth: int) -> Any:
        kinds: list[Callable[[], Any]] = [
            lambda: self.random.randrange(-(2**63), 2**63),
            self.random.random,
            lambda: self.random.choice([None, True, False, "", "ä\u2028\U0001f600", "x" * 300]),
        ]
        if depth:
            kinds += [
                lambda: [self._value(depth - 1) for _ in range(self.random.randrange(4))],
                lambda: {str(self.random.random()): self._value(depth - 1) for _ in range(self.random.randrange(4))},
            ]
        return self.random.choice(kinds)()

    # Attacks: each returns a message that must not pass, None where it does not apply

    def unsigned(self, message: Message) -> Message | None:
        """Nobody signed."""
        message.context = {}
        return message

    def junk(self, message: Message) -> Message | None:
        """Something else is in the signature's place."""
        wire = dict(message.context[KEY])
        wire[self.random.choice(sorted(wire))] = self._value(2)
        message.context = {KEY: self.random.choice([wire, self._value(3)])}
        return message

    def flipped(self, message: Message) -> Message | None:
        """One bit of certificate or signature is another one."""
        seal = Seal.from_wire(message.context[KEY])
        part = self.random.choice(["certificate", "signature"])
        blob = bytearray(getattr(seal, part))
        blob[self.random.randrange(len(blob))] ^= 1 << self.random.randrange(8)
        message.context = {KEY: dataclasses.replace(seal, **{part: bytes(blob)}).to_wire()}
        return message

    def altered(self, message: Message) -> Message | None:
        """The arguments are not those that were signed."""
        message.arguments = {**message.arguments, str(self.random.random()): self._value(1)}
        return message

    def renamed(self, message: Message) -> Message | None:
        """The signature is of another verb or version."""
        before = (message.verb, message.version)
        message.verb, message.version = self.random.choice(sorted(TABLE[message.topic])), self._version()
        return message if (message.verb, message.version) != before else None

    def redirected(self, message: Message) -> Message | None:
        """It was meant for another receiver."""
        place = self.random.choice([(topic, host) for topic in sorted(TABLE) for host in HOSTS])
        if place == (message.topic, message.server):
            return None
        message.topic, message.server = place
        return message

    def replayed(self, message: Message) -> Message | None:
        """It came before."""
        del message
        return dataclasses.replace(self.random.choice(self._recorded)) if self._recorded else None

    def late(self, message: Message) -> Message | None:
        """It was kept back, or its clock is wrong."""
        before, self.now = self.now, self.now + self.random.choice([-1, 1]) * (WINDOW + 1 + self.random.random() * 1e4)
        message.seal()
        self.now = before
        return message

    def stranger(self, message: Message) -> Message | None:
        """Another authority's credential of the right name."""
        message.border = self._strangers[message.border.identity]
        message.seal()
        return message

    def impostor(self, message: Message) -> Message | None:
        """A party of the rack calls in another's name, or what it may not."""
        message.border = self._borders[self.random.choice(sorted(self._borders))]
        try:
            TABLE[message.topic][message.verb].check(
                message.border.identity, message.server, message.verb, message.arguments
            )
        except PondError:
            message.seal()
            return message
        return None

    ATTACKS = (unsigned, junk, flipped, altered, renamed, redirected, replayed, late, stranger, impostor)

    # What happens to them

    def passes(self, message: Message) -> bool:
        """Have its receiver read it; returns whether the endpoint was called."""
        border = self._receivers.get((message.topic, message.server))
        if border is None:
            role = Role.AGENT if message.topic == AGENT_TOPIC else Role.CONTROLLER
            border = self._border(Identity(role, message.server), self._issuer)
            self._receivers[message.topic, message.server] = border
        called: list[Any] = []
        dispatcher = SimpleNamespace(dispatch=lambda incoming: called.append(incoming))
        target = SimpleNamespace(topic=message.topic, server=message.server)
        body = {"method": message.verb, "args": message.arguments, "version": message.version}
        try:
            SignedDispatcher(dispatcher, border, target).dispatch(SimpleNamespace(message=body, ctxt=message.context))
        except Exception as error:
            if not type(error).__name__ == "ExpectedException":
                raise
        return bool(called)

    def answered(self) -> bool:
        """Have somebody forge an answer to a call; returns whether the caller takes it."""
        message = self.honest()
        seal = Seal.from_wire(message.context[KEY])
        role = Role.AGENT if message.topic == AGENT_TOPIC else Role.CONTROLLER
        expected = Expected(role, message.server)
        liar = self.random.choice([name for name in sorted(self._borders) if name != Identity(role, message.server)])
        answer: Any = self._borders[liar].answer(seal, {"result": self._value(2)})
        true = self._borders[Identity(role, message.server)].answer(seal, {"result": self._value(2)})
        other = dataclasses.replace(seal, nonce=f"{self.random.getrandbits(128):032x}")
        forged = [
            answer,
            {**true, "content": {"result": "forged"}},
            {**true, "content": {"failure": {"kind": "NotFound", "message": "x"}}},
            self._borders[Identity(role, message.server)].answer(other, {"result": 1}),
            {"content": {"result": 1}},
            self._value(2),
        ]
        return self._takes(message.border, seal, expected, self.random.choice(forged))

    @staticmethod
    def _takes(border: Border, seal: Seal, expected: Expected, answer: Any) -> bool:
        try:
            border.open(seal.nonce, expected, answer)
        except PondError:
            return False
        return True

    def step(self) -> None:
        """Try one honest message, one attack and one forged answer."""
        self.now += self.random.random()
        honest = self.honest()
        self._note("honest", "accepted" if self.passes(honest) else "refused")
        self._recorded = [*self._recorded[-50:], honest]
        attack = self.random.choice(self.ATTACKS)
        message = attack(self, self.honest())
        if message is not None:
            self._note(attack.__name__, "accepted" if self.passes(message) else "refused")
        self._note("forged answer", "accepted" if self.answered() else "refused")
        self.done += 1

    def _note(self, kind: str, what: str) -> None:
        self.counts.setdefault(kind, Counter())[what] += 1

    @property
    def wrong(self) -> Mapping[str, int]:
        """Return what went the wrong way: attacks that were let in, and honest messages that were not."""
        found = {kind: seen["refused" if kind == "honest" else "accepted"] for kind, seen in self.counts.items()}
        return {kind: count for kind, count in found.items() if count}
