"""What a process signs with, whom it believes, and what it refuses: the rules of pondstack's border to the bus.

Requests and replies are signed, each over all that it means: the verb, its arguments, its receiver, the time, and a
nonce that a reply has to name. oslo.messaging itself cannot tell senders apart: whoever has a password of the broker
can publish into every queue, reply queues among them (its driver neither sets nor shows RabbitMQ's user-id).
"""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oslo_log import log

from pondstack.domain.errors import PondError, Refused
from pondstack.rpc.identity import callers
from pondstack.rpc.identity.credential import Authority, Credential, Holder, utc_now
from pondstack.rpc.identity.freshness import Freshness
from pondstack.rpc.identity.identity import Identity, Role
from pondstack.rpc.identity.refusal_log import RefusalLog
from pondstack.rpc.identity.revocations import Revocations
from pondstack.rpc.identity.signature import KEY, Request, Seal, plain, reply_bytes, request_bytes
from pondstack.rpc.targets import HOST_TOPICS

LOG = log.getLogger(__name__)

RESULT = "result"
FAILURE = "failure"
NONCE_BYTES = 16
UPGRADE = "[pondstack_identity] permissive_until is for the time of an upgrade"


@dataclass(frozen=True, slots=True)
class Expected:
    """Who may answer: a role, and the name where only one may."""

    role: Role
    name: str | None = None

    @classmethod
    def at(cls, topic: str, server: str | None) -> "Expected":
        """Return who answers calls to a topic."""
        if topic in HOST_TOPICS:
            return cls(Role.AGENT, server)
        return cls(Role.CONTROLLER, server)

    def check(self, identity: Identity) -> None:
        """Raise Refused for somebody else."""
        if identity.role != self.role or self.name not in (None, identity.name):
            wanted = self.role if self.name is None else Identity(self.role, self.name)
            raise Refused(f"{identity} answered a call of {wanted}")


class Border:
    """Signs what goes out, judges what comes in; thread-safe.

    `permissive()`: what is not signed is let in, for components of the former release; what is signed is judged all the
    same. `refused` is told the code of each refusal.
    """

    def __init__(
        self,
        credential: Credential,
        authority: Authority,
        freshness: Freshness,
        *,
        permissive: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.time,
        revocations: Revocations | None = None,
    ) -> None:
        """`revocations`: those that several borders of one process share."""
        self.identity = credential.identity
        self._permissive = permissive
        self._credential = credential
        self._authority = authority
        self._freshness = freshness
        self.revocations = revocations or Revocations()
        self.refused: Callable[[str], object] = lambda _code: None
        self._clock = clock
        self._log = RefusalLog(lambda text: LOG.warning("Refused by %s: %s", self.identity, text))

    @property
    def permissive(self) -> bool:
        """Whether what nobody signed is let in."""
        return self._permissive()

    @property
    def days_left(self) -> int:
        """Whole days until the own credential ends."""
        return (self._credential.certificate.not_valid_after_utc - utc_now()).days

    # The caller's side

    def sign(self, request: Request) -> Seal:
        """Return the seal of a request whose arguments are plain."""
        at, nonce = self._clock(), secrets.token_hex(NONCE_BYTES)
        return Seal(self._credential.der, at, nonce, self._credential.sign(request_bytes(request, at, nonce)))

    def open(self, nonce: str, expected: Expected, answer: Any) -> Mapping[str, Any]:
        """Return the content of a reply to the request `nonce`: {RESULT: ...} or {FAILURE: {...}}; raises Refused."""
        try:
            if not isinstance(answer, dict) or KEY not in answer:
                if self.permissive:
                    return {RESULT: answer}
                raise Refused(f"a reply is not signed; {UPGRADE}")
            seal, content = Seal.from_wire(answer[KEY]), answer.get("content")
            holder = self._holder(seal)
            expected.check(holder.identity)
            if seal.nonce != nonce or not isinstance(content, dict) or len(content) != 1:
                raise Refused(f"a reply of {holder.identity} is to another request")
            if not holder.signed(seal.signature, reply_bytes(nonce, content, seal.at)):
                raise Refused(f"a reply in the name of {holder.identity} has a signature that is not theirs")
        except Refused as error:
            self.note(error)
            raise
        return content

    # The receiver's side

    def seal_of(self, context: Any) -> Seal | None:
        """Return the seal in a request's context, None where nobody signed and that is let in; raises Refused."""
        found = context.get(KEY) if isinstance(context, Mapping) else None
        if found is not None:
            return Seal.from_wire(found)
        if not self.permissive:
            raise Refused(f"a call that nobody signed; {UPGRADE}")
        return None

    def admit(self, topic: str, receiver: str, message: Mapping[str, Any], seal: Seal | None) -> Identity | None:
        """Return who signed a request with this seal; raises Refused, StaleMessage. None: it was let in unsigned."""
        if seal is None:
            return None
        verb, arguments = message.get("method"), message.get("args") or {}
        holder = self._holder(seal)
        if not any(self._signed(holder, seal, message, place) for place in _places(topic, receiver)):
            raise Refused(f"a call of {verb!r} in the name of {holder.identity} has a signature that is not theirs")
        self._freshness.admit(str(holder.identity), seal.nonce, seal.at)
        callers.check(topic, receiver, verb, holder.identity, arguments)
        return holder.identity

    @staticmethod
    def _signed(holder: Holder, seal: Seal, message: Mapping[str, Any], place: str) -> bool:
        version, arguments = str(message.get("version", "1.0")), message.get("args") or {}
        request = Request(place, str(message.get("method")), version, arguments)
        return holder.signed(seal.signature, request_bytes(request, seal.at, seal.nonce))

    def answer(self, seal: Seal, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return a signed reply to a request with this seal."""
        at, said = self._clock(), plain(content)
        signature = self._credential.sign(reply_bytes(seal.nonce, said, at))
        return {KEY: Seal(self._credential.der, at, seal.nonce, signature).to_wire(), "content": said}

    def note(self, error: PondError) -> None:
        """Count a refusal, and log it unless there are many of its kind."""
        self._log.note(error.message)
        self.refused(error.code)

    def _holder(self, seal: Seal) -> Holder:
        holder = self._authority.holder(seal.certificate)
        revoked = self.revocations.moments.get(str(holder.identity))
        if revoked is not None and holder.issued.timestamp() < revoked:
            raise Refused(
                f"the credential of {holder.identity} was revoked: issue another one by "
                f"`pondstack-manage credentials issue --renew {holder.identity}`"
            )
        return holder


def _places(topic: str, receiver: str) -> tuple[str, ...]:
    """Return what a call may be addressed to: an agent is always called by its host's name."""
    named = f"{topic}/{receiver}"
    return (named,) if topic in HOST_TOPICS else (topic, named)
