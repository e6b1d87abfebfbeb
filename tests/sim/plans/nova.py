"""Nova of a history with plans: compute services, servers on hosts with claims in Placement, and live migrations."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from pondstack.clients.nova import ComputeService, ServerGroup, ServerState
from pondstack.clients.servers import PlacedServer, UnplacedServer
from pondstack.domain.errors import Conflict, NotFound, Unavailable

from ..invariants import Violation

if TYPE_CHECKING:
    from ..placement import Provider
    from .world import PlansWorld

FILTER_SECONDS = 0.3
"""So long after the filters have looked at the services a scheduler may claim."""
FAILS = 0.15


@dataclass(slots=True)
class Server:
    """A server. `busy`: Nova's task."""

    uuid: str
    host: str
    mib: int
    cpus: float
    busy: str = ""


@dataclass(slots=True)
class Service:
    """A compute service. `since`: when somebody changed it last."""

    enabled: bool = True
    reason: str = ""
    since: float = 0.0


class Cloud:
    """As pondstack.clients.nova.Nova, and what Nova's users do. `down_until`, `lossy_until`: it answers nobody before.

    A lossy one does what it is asked for, and its answer is lost.
    """

    def __init__(self, world: "PlansWorld") -> None:
        self._world, self._rack = world, world.rack
        self.services = {host: Service() for host in world.rack.history.hosts}
        self.servers: dict[str, Server] = {}
        self.lost: list[tuple[float, UnplacedServer]] = []
        self.down_until = self.lossy_until = 0.0
        self.at_work = 0
        self.process = world.rack.scheduler.process("nova")
        self._rng = self.process.rng

    # What the controllers ask for

    def compute_service(self, hypervisor: str) -> ComputeService | None:
        """Return one."""
        self._answer()
        return self._service(hypervisor) if hypervisor in self.services else None

    def compute_services(self) -> list[ComputeService]:
        """Return all."""
        self._answer()
        return [self._service(host) for host in self.services]

    def server(self, uuid: str) -> ServerState | None:
        """Return a server's state."""
        self._answer()
        found = self.servers.get(uuid)
        return None if found is None else ServerState(found.host, found.busy, running=True)

    def placed(self) -> list[PlacedServer]:
        """Return all servers."""
        self._answer()
        return [PlacedServer(item.uuid, item.host, item.busy, running=True) for item in self.servers.values()]

    def unplaced(self, _since: datetime) -> list[UnplacedServer]:
        """Return the servers for which no host was found lately, by the clock of the history."""
        self._answer()
        since = self._rack.scheduler.now - self._world.consolidation_conf.plan_seconds
        return [item for at, item in self.lost if at >= since]

    def server_groups(self) -> list[ServerGroup]:
        """Return all groups of servers: there are none."""
        self._answer()
        return []

    def disable(self, service: ComputeService, reason: str) -> None:
        """Have nothing be placed on a host."""
        self._answer()
        self._world.disabled(service.hypervisor, reason)
        self.change(service.hypervisor, enabled=False, reason=reason)
        self._lose()

    def enable(self, service: ComputeService) -> None:
        """Have servers be placed on a host."""
        self._answer()
        self._world.enabled(service.hypervisor)
        self.change(service.hypervisor, enabled=True)
        self._lose()

    def live_migrate(self, uuid: str, destination: str | None = None) -> None:
        """Begin a live migration."""
        self._answer()
        server = self.servers.get(uuid)
        if server is None:
            raise NotFound("Nova knows no such server")
        if server.busy:
            raise Conflict(f"Nova works on it: {server.busy}")
        self._world.migrates(uuid)
        server.busy = "migrating"
        self.spawn(lambda: self._migrate(server, destination))
        self._lose()

    def _service(self, host: str) -> ComputeService:
        item = self.services[host]
        mine = tuple(sorted(server.uuid for server in self.servers.values() if server.host == host))
        return ComputeService(f"service-{host}", host, item.enabled, item.reason, self.is_up(host), mine, host)

    def _answer(self) -> None:
        self._rack.moments.pass_by("rpc")
        if self.down_until > self._rack.scheduler.now:
            self._rack.scheduler.faults["nova down"] += 1
            raise Unavailable("Nova does not answer")

    def _lose(self) -> None:
        self._rack.moments.pass_by("rpc")
        if self.lossy_until > self._rack.scheduler.now and self._rng.random() < 0.5:
            self._rack.scheduler.faults["answer of nova lost"] += 1
            raise Unavailable("Nova does not answer")

    # What goes on

    def change(self, host: str, *, enabled: bool, reason: str = "") -> None:
        """Change a compute service, whoever wants it."""
        self._rack.scheduler.note(f"compute service of {host}: {'enabled' if enabled else f'disabled, {reason}'}")
        self.services[host] = Service(enabled, reason, self._rack.scheduler.now)

    def is_up(self, host: str) -> bool:
        """Return whether a nova-compute reports."""
        assert self._rack.guests
        process, found = self._rack.guests.computes[host].process, self._rack.hosts[host]
        runs = process is not None and process.alive and process.paused_until <= self._rack.scheduler.now
        return runs and found.up and not found.asleep

    def spawn(self, work: Callable[[], None]) -> None:
        """Do something that takes time; nothing is settled before it ends."""
        self.at_work += 1

        def run() -> None:
            try:
                work()
            finally:
                self.at_work -= 1

        self._rack.scheduler.spawn(self.process, run)

    def boot(self, mib: int, cpus: float) -> None:
        """Boot a server where there is room."""
        scheduler = self._rack.scheduler
        host = self._schedule(mib, set())
        if host is None:
            scheduler.faults["no valid host"] += 1
            uuid = str(UUID(int=len(self.lost) + 1))
            claim = {"MEMORY_MB": mib}
            failed = UnplacedServer(uuid, "tenant", f"m{mib}", claim, (), datetime.fromtimestamp(0, UTC))
            self.lost.append((scheduler.now, failed))
            return
        server = Server(str(UUID(int=self._rng.getrandbits(128), version=4)), host, mib, cpus)
        if not self._claim(server.uuid, host, mib):
            return
        scheduler.sleep(self._rng.uniform(0.1, 2.0))
        if not self._rack.hosts[host].up:
            self._drop(server.uuid)
            return
        self.servers[server.uuid] = server
        scheduler.faults["server booted"] += 1
        self.stands(server)

    def delete(self, server: Server) -> None:
        """Delete one that Nova does nothing with."""
        if not server.busy:
            server.busy = "deleting"
            self._rack.scheduler.sleep(self._rng.uniform(0.1, 1.0))
            del self.servers[server.uuid]
            self._drop(server.uuid)

    def _migrate(self, server: Server, destination: str | None) -> None:
        scheduler, source = self._rack.scheduler, server.host
        scheduler.sleep(self._rng.uniform(0.05, 0.5))
        target = self._schedule(server.mib, {source}, destination)
        aside = f"migration of {server.uuid}"
        if target is None or not self._move(server, aside, target):
            scheduler.faults["migration refused"] += 1
            server.busy = ""
            return
        ends = scheduler.now + self._rng.choice((0.5, 1.0, 2.0, 6.0))
        whole = True
        while scheduler.now < ends or not (self.is_up(source) and self.is_up(target)):
            scheduler.sleep(0.25)
            whole = whole and self._rack.hosts[source].up and self._rack.hosts[target].up
            if not whole:
                break
        if whole and self._rng.random() >= FAILS:
            server.host = target
            self._drop(aside)
            scheduler.faults["server migrated"] += 1
        else:
            self._put_back(server, aside)
            scheduler.faults["migration failed"] += 1
        server.busy = ""
        self.stands(server)

    def stands(self, server: Server) -> None:
        """See that a server's host does not sleep."""
        if self._rack.hosts[server.host].asleep:
            raise Violation("server_on_sleeper", f"server {server.uuid} is on {server.host}, which sleeps")

    # The scheduler, and claims

    def _schedule(self, mib: int, but: set[str], wanted: str | None = None) -> str | None:
        """Return a host for a server, some time after the filters have passed it."""
        found = [
            host
            for host, service in self.services.items()
            if service.enabled and self.is_up(host) and host not in but and wanted in (None, host)
        ]
        found = [host for host in found if self._room(host) >= mib]
        self._rack.scheduler.sleep(self._rng.uniform(0.0, FILTER_SECONDS))
        return self._rng.choice(found) if found else None

    def _room(self, host: str) -> float:
        provider = self._provider(host)
        record = provider.records.get("MEMORY_MB")
        if record is None:
            return 0
        return (record.total - record.reserved) * record.allocation_ratio - sum(provider.memory.values())

    def _claim(self, consumer: str, host: str, mib: int) -> bool:
        self._reach_placement()
        assert self._rack.guests
        self._rack.guests.placed.add(consumer)
        if self._rack.placement.claim_memory(self._provider(host), {consumer: mib}):
            return True
        self._rack.guests.placed.discard(consumer)
        return False

    def _move(self, server: Server, aside: str, target: str) -> bool:
        """Have the claim at the source be the migration's, and claim for the server at the target."""
        assert self._rack.guests
        self._reach_placement()
        source = self._provider(server.host)
        self._rack.guests.placed.add(aside)
        source.memory[aside] = source.memory.pop(server.uuid)
        source.generation += 1
        if self._claim(server.uuid, target, server.mib):
            return True
        self._rack.guests.placed.add(server.uuid)
        self._put_back(server, aside)
        return False

    def _put_back(self, server: Server, aside: str) -> None:
        self._reach_placement()
        for provider in self._rack.placement.providers.values():
            if provider.memory.pop(server.uuid, None) is not None:
                provider.generation += 1
        source = self._provider(server.host)
        source.memory[server.uuid] = source.memory.pop(aside)
        source.generation += 1
        assert self._rack.guests
        self._rack.guests.placed.discard(aside)
        self._rack.placement.changed()

    def _drop(self, consumer: str) -> None:
        self._reach_placement()
        for provider in self._rack.placement.providers.values():
            if provider.memory.pop(consumer, None) is not None:
                provider.generation += 1
        assert self._rack.guests
        self._rack.guests.placed.discard(consumer)

    def _reach_placement(self) -> None:
        while self._rack.placement.down_until > self._rack.scheduler.now:
            self._rack.scheduler.sleep(0.2)

    def _provider(self, host: str) -> "Provider":
        return self._rack.placement.providers[f"provider-{host}"]
