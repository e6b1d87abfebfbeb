"""Nova as pondstack sees it: claims, attaches, guests, moves. It repeats what was not answered, then gives up.

What it does in which order is nova_plugins' and Nova's own: claim, attach, start; stop, detach, drop the claim.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import oslo_messaging

from pondstack.domain.errors import NotFound, PondError, Unavailable
from pondstack.domain.model import indexes_of
from pondstack.domain.requests import AssignRequest
from pondstack.rpc.wire import Attachment

from . import settings
from .api import SimAgentAPI
from .heirs.moves import HandedMove
from .invariants import Held, Violation
from .plan import SLICE_MIB, Step

if TYPE_CHECKING:
    from .rack import Rack

TRIES = 4


@dataclass(slots=True)
class Instance:
    """One VM. `busy`: an operation has its lock. `source`: where it still runs while it is moved."""

    name: str
    host: str
    pool: str
    mib: int
    held: Held | None = None
    busy: bool = True
    off: bool = False
    moves: int = 0
    source: str = ""

    def is_on(self, host: str) -> bool:
        """Return whether it is a guest of a host."""
        return host in (self.host, self.source)


class Nova:
    """All of Nova. Its tasks run in a process that no fault touches; each operation gets new operation ids."""

    def __init__(self, rack: "Rack") -> None:
        self._rack = rack
        self.agents = SimAgentAPI(rack.network, rack.moments, settings.ATTACH_SECONDS)
        self._numbers = 0
        self.process = rack.scheduler.process("nova")
        self.instances: dict[str, Instance] = {}
        self.running_operations = 0

    def start(self, step: Step) -> None:
        """Begin an operation, unless it does not fit the VM's state."""
        self._rack.scheduler.spawn(self.process, self._guarded, step)
        self.running_operations += 1

    def _guarded(self, step: Step) -> None:
        try:
            if step.kind == "boot":
                self._boot(step)
                return
            instance = self.instances.get(step.target)
            if instance is None or instance.busy:
                return
            instance.busy = True
            self._rack.scheduler.note(f"NOVA {step}")
            _WORK[step.kind](self, instance, step)
            instance.busy = False
        finally:
            self.running_operations -= 1

    def _boot(self, step: Step) -> None:
        if step.target in self.instances:
            return
        mib = step.values["slices"] * SLICE_MIB
        instance = Instance(step.target, step.values["host"], self._rack.pool_uuids[step.values["pool"]], mib)
        self.instances[instance.name] = instance
        self._rack.scheduler.note(f"NOVA {step}")
        try:
            claimed = self._rack.placement.claim_pool(instance.name, instance.host, instance.pool, mib)
        except Unavailable:
            claimed = False
        attached = self._attach(instance, instance.host, None) if claimed else None
        if attached is None or not self.run(instance, instance.host, attached):
            if claimed:
                self._clean_up(instance, instance.host)
                self._drop(instance.name)
            del self.instances[instance.name]
            return
        instance.busy = False

    def _attach(
        self, instance: Instance, host: str, shape: tuple[int, ...] | None, source: str = ""
    ) -> Attachment | None:
        """Attach, by one operation id; None when it was refused or never answered, or its nova-compute lost power."""
        runs_on = self.power(host)
        operation_id = self._operation(instance, "attach")
        more = {"shape": shape, "source": source}
        request = AssignRequest(instance.name, host, instance.pool, instance.mib, 2 * instance.mib, **more)
        for _ in range(TRIES):
            if not runs_on():
                return None
            try:
                answer = self.agents.attach(operation_id, request)
            except (Unavailable, oslo_messaging.MessagingTimeout) as error:
                self._rack.scheduler.note(f"attach {instance.name}: {error}")
                self._rack.scheduler.sleep(0.3)
            except PondError as error:
                self._rack.scheduler.note(f"attach {instance.name} refused: {error}")
                return None
            else:
                if runs_on():
                    self._rack.scheduler.acknowledged += 1
                    held = _held(instance, host, answer, None)
                    self._rack.watch.promise(held)
                    return answer
        return None

    def power(self, host: str) -> Callable[[], bool]:
        """Return what tells whether a host has had power ever since: what ran there goes on."""
        its = self._rack.hosts[host]
        cuts = its.power_cuts
        return lambda: its.up and its.power_cuts == cuts

    def run(self, instance: Instance, host: str, attached: Attachment) -> bool:
        """Start the guest on a host; False when the host died meanwhile."""
        self._rack.moments.pass_by("guest")
        if not self._rack.hosts[host].up:
            return False
        guest = f"{instance.name}@{host}"
        try:
            self._rack.hosts[host].memory.start_guest(guest, attached.allocation_uuid)
        except NotFound as error:
            raise Violation("acknowledged_lost", f"{guest} cannot start: {error}") from None
        held = _held(instance, host, attached, guest.encode())
        instance.held, instance.host = held, host
        self._rack.caches.wrote(host, attached.allocation_uuid)
        self._rack.watch.started(held)
        return True

    def stop(self, instance: Instance, host: str) -> None:
        """End a guest on a host."""
        self._rack.hosts[host].memory.stop_guest(f"{instance.name}@{host}")
        self._rack.watch.stopped(host, instance.name)

    def _delete(self, instance: Instance, _step: Step) -> None:
        self._rack.watch.forget(instance.host, instance.name)
        if not self._rack.network.reaches(instance.host):
            # A local delete: the claim goes at once, the guest runs on until its host is heard of again.
            self._drop(instance.name)
            while not self._rack.network.reaches(instance.host):
                self._rack.scheduler.sleep(1.0)
            self._rack.scheduler.sleep(1.0)
        self.stop(instance, instance.host)
        self.detach(instance, instance.host)
        self._drop(instance.name)
        del self.instances[instance.name]

    def _clean_up(self, instance: Instance, host: str) -> None:
        self._rack.watch.forget(host, instance.name)
        self.stop(instance, host)
        self.detach(instance, host)

    def give_up(self, instance: Instance) -> None:
        """Delete a guest that does not run."""
        self._clean_up(instance, instance.host)
        self._drop(instance.name)
        del self.instances[instance.name]

    def detach(self, instance: Instance, host: str) -> bool:
        """Give back what a guest has on a host; False while its agent does not answer."""
        operation_id = self._operation(instance, "detach")
        for _ in range(TRIES):
            if not self._rack.hosts[host].up:
                return False
            try:
                self.agents.detach(host, operation_id=operation_id, consumer_uuid=instance.name)
                return True
            except (PondError, oslo_messaging.MessagingTimeout) as error:
                self._rack.scheduler.note(f"detach {instance.name}: {error}")
                self._rack.scheduler.sleep(0.3)
        return False

    def _drop(self, consumer: str) -> None:
        """Drop a claim; Nova's own clean-up repeats it until Placement answers."""
        while True:
            try:
                self._rack.placement.drop(consumer)
                return
            except Unavailable:
                self._rack.scheduler.sleep(0.5)

    def _evacuate(self, instance: Instance, step: Step) -> None:
        """Build a guest of a dead host anew elsewhere; its old host finds out when it is back."""
        source, target = instance.host, step.values["host"]
        if self._rack.hosts[source].up or source == target:
            return
        self._rack.watch.forget(source, instance.name)
        self._drop(instance.name)
        try:
            claimed = self._rack.placement.claim_pool(instance.name, target, instance.pool, instance.mib)
        except Unavailable:
            claimed = False
        attached = self._attach(instance, target, None) if claimed else None
        if attached is None or not self.run(instance, target, attached):
            self._clean_up(instance, target)
            self._drop(instance.name)
            del self.instances[instance.name]

    def _reboot(self, instance: Instance, step: Step) -> None:
        host = instance.host
        self.stop(instance, host)
        self._rack.scheduler.sleep(step.values["seconds"])
        self.restart(instance)

    def restart(self, instance: Instance) -> None:
        """Start a guest again on its host with what it holds; it stays off when host or agent do not answer."""
        host, held = instance.host, instance.held
        instance.off = True
        for _ in range(TRIES):
            if not self._rack.hosts[host].up:
                return
            try:
                found = self.agents.get_attachment(host, consumer_uuid=instance.name)
            except (PondError, oslo_messaging.MessagingTimeout):
                self._rack.scheduler.sleep(0.3)
                continue
            if found is None or held is None or found.allocation_uuid != held.allocation_uuid:
                if (host, instance.name) in self._rack.watch.promised:
                    raise Violation("acknowledged_lost", f"{instance.name} finds {found} on {host}, it had {held}")
                return
            instance.off = not self.run(instance, host, found)
            return

    def _migrate(self, instance: Instance, step: Step) -> None:
        source, target = instance.host, step.values["host"]
        if source == target or instance.off or instance.held is None:
            return
        instance.source = source
        try:
            self._move(instance, source, target, step.values["seconds"])
        finally:
            instance.source = ""

    def _move(self, instance: Instance, source: str, target: str, seconds: float) -> None:
        instance.moves += 1
        aside = f"move-{instance.name}-{instance.moves}"
        try:
            moved = self._rack.placement.move(instance.name, aside, target, instance.pool, instance.mib)
        except Unavailable:
            moved = False
        if not moved:
            return
        old = instance.held
        assert old is not None
        shape, runs_on = tuple(_runs(old)), self.power(target)
        attached = self._attach(instance, target, shape, source if self._rack.history.hands_over else "")
        if attached is not None and attached.handed:
            if HandedMove(self._rack, self, instance, target, attached).run(seconds):
                self._drop(aside)
                return
        elif attached is not None and self._rack.hosts[source].up and self.run(instance, target, attached):
            self._rack.scheduler.sleep(seconds)
            if runs_on():
                self._rack.watch.forget(source, instance.name)
                self.stop(instance, source)
                self.detach(instance, source)
                self._drop(aside)
                return
            self.stop(instance, target)
        instance.held, instance.host = old, source
        self._clean_up(instance, target)
        self._put_back(instance.name, aside)
        source_host = self._rack.hosts[source]
        if source_host.up and f"{instance.name}@{source}" not in source_host.memory.mapped:
            # Its host lost power meanwhile, and was back while this migration was under way.
            self.restart(instance)

    def _put_back(self, consumer: str, aside: str) -> None:
        while True:
            try:
                self._rack.placement.put_back(consumer, aside)
                return
            except Unavailable:
                self._rack.scheduler.sleep(0.5)

    def host_is_back(self, host: str) -> None:
        """Start the guests of a host that has power again, as nova-compute does."""
        for instance in list(self.instances.values()):
            if instance.host == host and not instance.busy and instance.held is not None:
                instance.busy = True
                self.running_operations += 1
                self._rack.scheduler.spawn(self.process, self._restart, instance)

    def _restart(self, instance: Instance) -> None:
        try:
            self.restart(instance)
            instance.busy = False
        finally:
            self.running_operations -= 1

    def _operation(self, instance: Instance, kind: str) -> str:
        self._numbers += 1
        return f"{kind}-{instance.name}-{self._numbers}"


_WORK = {
    "delete": Nova._delete,
    "migrate": Nova._migrate,
    "reboot": Nova._reboot,
    "evacuate": Nova._evacuate,
}


def _held(instance: Instance, host: str, attached: Attachment, mark: bytes | None) -> Held:
    indexes = indexes_of(attached.extents)
    return Held(instance.name, host, attached.allocation_uuid, attached.pool_uuid, indexes, mark)


def _runs(held: Held) -> list[int]:
    """Return the slices per extent of what is held, in its order."""
    counts: list[int] = []
    last = None
    for index in held.indexes:
        if last is not None and index == last + 1:
            counts[-1] += 1
        else:
            counts.append(1)
        last = index
    return counts
