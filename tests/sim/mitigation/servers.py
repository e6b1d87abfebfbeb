"""Nova of a history: servers, and what their users do with them, each operation in several steps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pondstack.clients.nova import ServerState
from pondstack.controller.mitigation.claims import covers_all
from pondstack.domain.errors import Conflict, PoolShortage

from ..invariants import Violation

if TYPE_CHECKING:
    from .world import World

Operation = Iterator[None]


@dataclass(slots=True)
class Guest:
    """A server. `pages`: where what it uses of the CPU-less node is, "" while it is off; `domain`: where libvirt's
    stored domain binds it, `save`: where its managed save does, "" without one. `known`: the schedulers have heard that
    it is corrected; `looked_busy`: what the controller was told last.
    """

    uuid: str
    host: str
    guest_mib: int
    pool_mib: int
    task: str = ""
    running: bool = True
    pages: str = "pool"
    domain: str = "pool"
    save: str = ""
    known: bool = False
    looked_busy: bool = False


class SimNova:
    """As pondstack.clients.nova.Nova, and the users."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.guests: dict[str, Guest] = {}
        self._operations: list[Operation] = []

    # The controller's calls

    def server(self, uuid: str) -> ServerState | None:
        """Return a server's state."""
        self._world.before("nova")
        guest = self.guests.get(uuid)
        if guest is not None:
            guest.looked_busy = bool(guest.task)
        state = guest and ServerState(guest.host, guest.task, guest.running)
        self._world.after("nova")
        return state or None

    def live_migrate(self, uuid: str) -> None:
        """Begin a live migration."""
        self._world.before("nova")
        guest = self.guests.get(uuid)
        if guest is None or guest.task or not guest.running:
            raise Conflict("it cannot be migrated now")
        self._world.count("migration asked for")
        self.begin(guest, self._migrate)
        self._world.after("nova")

    # The users'

    def begin(self, guest: Guest, operation: Callable[[Guest], Operation]) -> None:
        """Begin an operation, which takes its first step at once."""
        steps = operation(guest)
        next(steps, None)
        self._operations.append(steps)

    def act(self) -> None:
        """Have a user do something that a server's state allows."""
        rng = self._world.rng
        idle = [guest for guest in self.guests.values() if not guest.task]
        if not idle:
            return
        guest = rng.choice(idle)
        if guest.running:
            choices = [self._stop, self._reboot, self._suspend, self._migrate, self._migrate, self._cold]
            if rng.random() < 0.1:
                choices = [self._delete]
        else:
            choices = [self._resume if guest.save else self._start]
        chosen = rng.choice(choices)
        self._world.count(f"user: {chosen.__name__.strip('_')}")
        self.begin(guest, chosen)

    def further(self) -> None:
        """Take one step of an operation that is under way."""
        if self._operations:
            steps = self._world.rng.choice(self._operations)
            if next(steps, self) is self:
                self._operations.remove(steps)

    @property
    def at_work(self) -> bool:
        """Whether an operation is under way."""
        return bool(self._operations)

    def settle(self) -> None:
        """Have all servers that are off on again."""
        for guest in self.guests.values():
            if not guest.task and not guest.running:
                self.begin(guest, self._resume if guest.save else self._start)

    def _stop(self, guest: Guest) -> Operation:
        guest.task = "powering-off"
        yield
        guest.running, guest.pages, guest.task = False, "", ""

    def _start(self, guest: Guest) -> Operation:
        guest.task = "powering-on"
        yield
        yield from self._make(guest)
        guest.task = ""

    def _reboot(self, guest: Guest) -> Operation:
        guest.task = "rebooting_hard"
        yield
        guest.running, guest.pages = False, ""
        yield
        yield from self._make(guest)
        guest.task = ""

    def _make(self, guest: Guest) -> Operation:
        """Do as the virt driver: all local, without slices, if the claim says so."""
        local = covers_all(self._world.placement.claims[guest.uuid].held, guest.guest_mib)
        yield
        agent = self._world.agents[guest.host]
        if local:
            agent.release(guest.uuid)
        elif not agent.holds(guest.uuid):
            try:
                agent.attach(guest)
            except PoolShortage:
                return
        guest.pages = guest.domain = "local" if local else "pool"
        guest.save, guest.running = "", True

    def _suspend(self, guest: Guest) -> Operation:
        guest.task = "suspending"
        yield
        guest.save, guest.running, guest.pages, guest.task = guest.domain, False, "", ""

    def _resume(self, guest: Guest) -> Operation:
        guest.task = "resuming"
        yield
        if guest.save == "pool" and not self._world.agents[guest.host].holds(guest.uuid):
            raise Violation("resumed_without_slices", f"{guest.uuid} is resumed on slices that it has not any more")
        guest.pages, guest.save, guest.running, guest.task = guest.save, "", True, ""

    def _delete(self, guest: Guest) -> Operation:
        guest.task = "deleting"
        yield
        guest.running, guest.pages = False, ""
        self._world.agents[guest.host].release(guest.uuid)
        self._world.placement.claims.pop(guest.uuid, None)
        del self.guests[guest.uuid]

    def _cold(self, guest: Guest) -> Operation:
        """Move it while it is off: it is split by what the schedulers know."""
        guest.task = "resize_migrating"
        yield
        world, source, pool_mib = self._world, guest.host, 0 if guest.known else guest.pool_mib
        target = next(host for host in world.agents if host != source)
        if not world.placement.move(guest, target, pool_mib):
            guest.task = ""
            return
        yield
        guest.running, guest.pages, guest.save = False, "", ""
        world.agents[source].release(guest.uuid)
        guest.host = target
        yield
        world.placement.forget_move(guest)
        world.placed(guest, pool_mib)
        yield from self._make(guest)
        guest.task = ""

    def _migrate(self, guest: Guest) -> Operation:
        """Live: the scheduler sizes the request by what it knows; the claim goes to the migration meanwhile."""
        guest.task = "migrating"
        yield
        world, source = self._world, guest.host
        target = next(host for host in world.agents if host != source)
        is_local = guest.domain == "local" and not world.agents[source].holds(guest.uuid)
        pool_mib = 0 if guest.known or is_local else guest.pool_mib
        if not world.placement.move(guest, target, pool_mib):
            guest.task = ""
            return
        yield
        try:
            if pool_mib:
                world.agents[target].attach(guest)
        except PoolShortage:
            world.placement.put_back(guest)
            guest.task = ""
            return
        yield
        if world.rng.random() < 0.3:
            world.agents[target].release(guest.uuid)
            world.placement.put_back(guest)
            guest.task = ""
            return
        guest.host, guest.pages = target, "pool" if pool_mib else "local"
        guest.domain = guest.pages
        world.agents[source].release(guest.uuid)
        world.placement.forget_move(guest)
        guest.task = ""
