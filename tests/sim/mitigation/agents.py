"""The agents of a history: they copy, rewrite and release as production's do, and are watched in doing so."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid5

import oslo_messaging

from pondstack.controller.mitigation.claims import covers_all
from pondstack.domain.errors import BadRequest, Conflict, InUse, NoLocalRoom, NotFound, PondError, StaleEpoch
from pondstack.domain.requests import AssignRequest
from pondstack.rpc.wire import DomainRewrite, Mitigation

from ..invariants import Violation

if TYPE_CHECKING:
    from .servers import Guest
    from .world import World

PAGES = 4
PAGES_OF_MIB = 256


@dataclass(slots=True)
class Copy:
    """A record of a mitigation. `stops`: it is to be aborted at its next chunk."""

    operation: str
    allocation: str
    state: str
    left: int = PAGES
    stops: bool = False


class SimAgent:
    """One host's agent. `attached`: allocation by consumer, as on its disk; `outbox`: releases to be told."""

    def __init__(self, world: "World", host: str) -> None:
        self._world, self.host = world, host
        self.attached: dict[str, str] = {}
        self.copies: dict[str, Copy] = {}
        self.outbox: list[str] = []
        self.down_until = 0.0
        self._epoch = 0
        self._late: list[tuple[float, Callable[[], Any]]] = []
        self._numbers = 0

    @property
    def up(self) -> bool:
        """Whether it runs."""
        return self._world.now >= self.down_until

    # As pondstack.rpc.agent_api.AgentAPI, for this host

    def call(self, work: Callable[[], Any], epoch: int | None) -> Any:
        """Do what the controller asks for: perhaps late, perhaps unanswered."""

        def obey() -> Any:
            if epoch is not None:
                if epoch < self._epoch:
                    raise StaleEpoch("another leads")
                self._epoch = epoch
            return work()

        if not self.up:
            raise oslo_messaging.MessagingTimeout
        if self._world.loses():
            self._world.count("call comes late")
            self._late.append((self._world.now + self._world.rng.uniform(0.1, 8.0), obey))
            raise oslo_messaging.MessagingTimeout
        answer = obey()
        if self._world.loses():
            self._world.count("answer lost")
            raise oslo_messaging.MessagingTimeout
        return answer

    def mitigate(self, operation: str, consumer: str) -> Mitigation:
        """Begin to copy."""
        known = self.copies.get(consumer)
        if known is not None and known.state == "moving" and known.operation != operation:
            raise Violation("begun_anew", f"{consumer} is copied already, by another operation")
        if known is not None and (known.operation == operation or known.state == "moving"):
            return self._answer(consumer)
        if consumer not in self.attached:
            raise NotFound("it holds nothing here")
        guest = self._world.nova.guests.get(consumer)
        if self._world.history.files:
            raise BadRequest("its slices are a file")
        if self.host in self._world.history.roomless:
            raise NoLocalRoom("no room")
        if guest is None or guest.host != self.host:
            raise NotFound("it does not run here")
        if guest.looked_busy:
            raise Violation("while_busy", f"{consumer} is copied while Nova works on it")
        claim = self._world.placement.claims.get(consumer)
        if not guest.task and (claim is None or not covers_all(claim.held, guest.guest_mib)):
            raise Violation("copied_unclaimed", f"{consumer} is copied to local memory that it does not claim")
        self._world.count("copy begun")
        self.copies[consumer] = Copy(operation, self.attached[consumer], "moving" if guest.running else "mitigated")
        return self._answer(consumer)

    def abort(self, operation: str, consumer: str) -> Mitigation:
        """Stop a copy; one that has not come yet begins nothing."""
        known = self.copies.get(consumer)
        if known is not None and known.operation == operation:
            if known.state == "mitigated":
                raise Conflict("it is too late")
            known.stops = True
            return self._answer(consumer)
        if consumer not in self.attached:
            raise NotFound("it holds nothing here")
        if operation:
            self.copies[consumer] = Copy(operation, self.attached[consumer], "aborted")
        return self._answer(consumer)

    def rewrite(self, consumer: str) -> DomainRewrite:
        """Bind the stored domain, and a managed save, to local memory."""
        guest = self._world.nova.guests.get(consumer)
        if guest is None or guest.host != self.host:
            return DomainRewrite("absent")
        self._world.count("domain rewritten")
        guest.domain, guest.save = "local", guest.save and "local"
        return DomainRewrite("rewritten")

    def release_mitigated(self, consumer: str) -> bool:
        """Release what a mitigated guest held."""
        if consumer not in self.attached:
            return not self._pending(consumer)
        copy, guest = self.copies.get(consumer), self._world.nova.guests.get(consumer)
        if copy is None or copy.state != "mitigated" or copy.allocation != self.attached[consumer]:
            raise Conflict("it is not mitigated")
        if guest is not None and guest.host == self.host:
            if guest.pages == "pool":
                raise InUse("it uses them")
            if "pool" in (guest.domain, guest.save):
                raise Violation("released_before_rewritten", f"{consumer} would start on slices that it gave back")
        self.release(consumer)
        return False

    def progress(self, consumer: str) -> Mitigation | None:
        """Return how far a copy is."""
        return self._answer(consumer) if consumer in self.copies else None

    def _answer(self, consumer: str) -> Mitigation:
        copy = self.copies[consumer]
        return Mitigation(
            consumer,
            copy.allocation,
            copy.operation,
            copy.state,
            PAGES * PAGES_OF_MIB,
            (PAGES - copy.left) * PAGES_OF_MIB,
            reason="for the test",
        )

    # The host's own

    def holds(self, consumer: str) -> bool:
        """Whether a guest has slices here."""
        return consumer in self.attached

    def attach(self, guest: "Guest") -> None:
        """Get slices for a guest; raises PoolShortage."""
        self._numbers += 1
        operation = str(uuid5(self._world.names, f"attach {self.host} {guest.uuid} {self._numbers}"))
        request = AssignRequest(guest.uuid, self.host, self._world.pool, guest.pool_mib, guest.guest_mib)
        answer = self._world.for_agents.slices.assign(operation, request)
        uuid = answer["allocation_uuid"]
        self._world.for_agents.slices.acknowledge(f"{operation}-a", uuid, self.host)
        self.attached[guest.uuid] = uuid

    def release(self, consumer: str) -> None:
        """Let a guest's slices go; the controller is told later."""
        allocation = self.attached.pop(consumer, None)
        if allocation is not None:
            self.outbox.append(allocation)

    def _pending(self, consumer: str) -> bool:
        return any(self._world.consumer_of(allocation) == consumer for allocation in self.outbox)

    def tick(self) -> None:
        """Do a little."""
        if not self.up:
            return
        if self._late and self._late[0][0] < self._world.now:
            try:
                self._late.pop(0)[1]()
            except PondError as error:
                self._world.note(f"late call refused: {error}")
        if self.outbox and self._world.rng.random() < 0.5:
            allocation = self.outbox.pop(0)
            self._world.for_agents.slices.release(f"release-{allocation}", allocation, self.host)
        for consumer, copy in self.copies.items():
            if copy.state == "moving" and self._world.rng.random() < 0.4:
                self._chunk(consumer, copy)

    def _chunk(self, consumer: str, copy: Copy) -> None:
        guest = self._world.nova.guests.get(consumer)
        if guest is None or guest.host != self.host or not guest.running or consumer not in self.attached:
            copy.state = "failed"
        elif copy.stops:
            copy.state = "aborted"
        elif self._world.draining or self._world.rng.random() > 0.05:
            copy.left -= 1
            if not copy.left:
                copy.state, guest.pages = "mitigated", "local"
        else:
            copy.state = "failed"

    def crash(self) -> None:
        """End, and come back after a while."""
        self._world.count("agent crashed")
        self.down_until = self._world.now + self._world.rng.uniform(0.5, 8.0)
        for copy in self.copies.values():
            if copy.state == "moving":
                copy.state = "failed"


class SimAgents:
    """pondstack.rpc.agent_api.AgentAPI for the mitigator."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def mitigate(self, host: str, *, epoch: int, operation_id: str, consumer_uuid: str, hold: bool) -> Mitigation:
        """Begin to copy."""
        assert hold
        return self._call(host, lambda agent: agent.mitigate(operation_id, consumer_uuid), epoch)

    def get_mitigation(self, host: str, *, consumer_uuid: str) -> Mitigation | None:
        """Return how far it is."""
        return self._call(host, lambda agent: agent.progress(consumer_uuid), None)

    def abort_mitigation(self, host: str, *, epoch: int, consumer_uuid: str, operation_id: str = "") -> Mitigation:
        """Stop one."""
        return self._call(host, lambda agent: agent.abort(operation_id, consumer_uuid), epoch)

    def rewrite_domain(self, host: str, *, epoch: int, operation_id: str, consumer_uuid: str) -> DomainRewrite:
        """Rewrite what libvirt keeps."""
        del operation_id
        return self._call(host, lambda agent: agent.rewrite(consumer_uuid), epoch)

    def release_mitigated(self, host: str, *, epoch: int, operation_id: str, consumer_uuid: str) -> bool:
        """Release."""
        del operation_id
        return self._call(host, lambda agent: agent.release_mitigated(consumer_uuid), epoch)

    def _call(self, host: str, work: Callable[[SimAgent], Any], epoch: int | None) -> Any:
        agent = self._world.agents[host]
        self._world.moment("agent")
        answer = agent.call(lambda: work(agent), epoch)
        self._world.moment("agent")
        return answer
