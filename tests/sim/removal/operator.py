"""The operator of a history: takes hosts and pool devices away, has them removed, and brings them back.

Whatever refuses a removal, it asks again. It fences a host that is gone for ever, once its guests are deleted.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import oslo_messaging

from pondstack.domain.errors import NotFound, PondError

from .. import settings
from ..api import SimControllerAPI
from ..plan import Step
from .plan import DECOMMISSION, FENCE, FOR_EVER, RETIRE

if TYPE_CHECKING:
    from ..rack import Rack

DRAIN_SECONDS = 6.0
"""So long it waits for guests to end before it goes on all the same."""
PAUSE_SECONDS = 0.5


class Operator:
    """`gone`: hosts without power until it brings them back; `back`: those that it let take part again after a fence;
    `retired`: pools whose devices are not configured.
    """

    def __init__(self, rack: "Rack") -> None:
        self._rack = rack
        self.process = rack.scheduler.process("operator")
        self.gone: set[str] = set()
        self.lost: set[str] = set()
        self.back: set[str] = set()
        self.retired: set[str] = set()
        self.at_work = 0
        self._client = SimControllerAPI(
            rack.network, rack.moments, rack.scheduler, settings.CONTROLLER_CALL_SECONDS, self.process.rng
        )

    def start(self, step: Step) -> None:
        """Begin."""
        self.at_work += 1
        self._rack.scheduler.spawn(self.process, self._guarded, step)

    def _guarded(self, step: Step) -> None:
        self._rack.scheduler.note(f"OPERATOR {step}")
        try:
            {DECOMMISSION: self._decommission, RETIRE: self._retire, FENCE: self._fence}[step.kind](step)
        finally:
            self.at_work -= 1

    # Hosts

    def _decommission(self, step: Step) -> None:
        name, seconds = step.target, step.values["seconds"]
        if step.values["drains"]:
            self._drain(lambda: self._of(name))
        host = self._rack.hosts[name]
        self.gone.add(name)
        if host.up:
            host.die()
        if seconds == FOR_EVER:
            self._lose(name)
            return
        removed = self._ask(lambda: self._client.remove_host(name=name), self._rack.scheduler.now + seconds)
        if removed:
            self._rack.scheduler.faults["host removed"] += 1
            if step.values["wiped"]:
                self._wipe(name)
        self.gone.discard(name)
        host.revive()
        self._rack.nova.host_is_back(name)

    def _lose(self, name: str) -> None:
        """Let a host be gone for ever: its guests are deleted, what it held is fenced, and it is removed.

        Its disk is scrap, too: what it has on record means nothing any more.
        """
        self.lost.add(name)
        self.back.discard(name)
        while self._of(name):
            self._drain(lambda: self._of(name))
        self._wipe(name)
        # As by an API of the former release: whichever generation there is. It is never back.
        self._ask(lambda: self._client.fence_host(name=name, reason="it is scrap", force=True, generation=None))
        self._ask(lambda: self._client.remove_host(name=name))
        self._rack.scheduler.faults["host removed for ever"] += 1

    def again(self, name: str) -> None:
        """Remove a host once more: a report that was long on its way had made it a new one."""
        if not self.at_work:
            self.at_work += 1
            self._rack.scheduler.spawn(self.process, self._again, name)

    def _again(self, name: str) -> None:
        try:
            self._ask(lambda: self._client.remove_host(name=name))
        finally:
            self.at_work -= 1

    def _wipe(self, name: str) -> None:
        """Set a host up anew; what it was promised for guests that were moving there goes, as they cannot arrive."""
        self._rack.hosts[name].memory.disk.clear()
        self._rack.watch.wiped(f"the agent of {name}")
        for host, vm in list(self._rack.watch.promised):
            if host == name:
                self._rack.watch.forget(host, vm)

    def _of(self, host: str) -> list[str]:
        return [item.name for item in self._rack.nova.instances.values() if item.is_on(host)]

    def _fence(self, step: Step) -> None:
        """Fence a host that has died, once its guests are deleted; let it take part again when it was set up anew."""
        name, host = step.target, self._rack.hosts[step.target]
        self.back.discard(name)
        self.gone.add(name)
        host.die()
        while self._of(name):
            self._drain(lambda: self._of(name))
        self._wipe(name)
        self._ask(lambda: self._fence_as_read(name))
        self._rack.scheduler.sleep(step.values["seconds"])
        self.gone.discard(name)
        host.revive()
        self._ask(lambda: self._client.unfence_host(name=name))
        self.back.add(name)
        self._rack.nova.host_is_back(name)
        self._rack.scheduler.faults["host fenced and back"] += 1

    def _fence_as_read(self, name: str) -> None:
        """Fence a host as the shell's command does: each time anew, for the generation that it has just read.

        A request that was given up may still be carried out later, when the host is back.
        """
        known = self._rack.view().hosts.get(name)
        generation = known.generation if known is not None else 0
        self._client.fence_host(name=name, reason="it has died", force=True, generation=generation)

    # Pools

    def _retire(self, step: Step) -> None:
        name, uuid = step.target, self._rack.pool_uuids[step.target]
        if step.values["drains"]:
            self._drain(lambda: [item.name for item in self._rack.nova.instances.values() if item.pool == uuid])
        self.retired.add(name)
        self._restart_controllers()
        removed = self._ask(
            lambda: self._client.remove_pool(uuid=uuid), self._rack.scheduler.now + step.values["seconds"]
        )
        if removed:
            self._rack.scheduler.faults["pool removed"] += 1
        self.retired.discard(name)
        self._restart_controllers()

    def _restart_controllers(self) -> None:
        """Restart them one by one, as after a change of their configuration."""
        for name in self._rack.history.controllers:
            node = self._rack.nodes[name]
            self._rack.scheduler.kill(node.process)
            self._rack.start_node(name)
            self._rack.scheduler.sleep(1.0)

    # Both

    def _drain(self, names: Callable[[], list[str]]) -> None:
        """Delete guests, and wait for a while until they are gone."""
        ends = self._rack.scheduler.now + DRAIN_SECONDS
        while names() and self._rack.scheduler.now < ends:
            for name in names():
                self._rack.nova.start(Step(self._rack.scheduler.now, "delete", name))
            self._rack.scheduler.sleep(PAUSE_SECONDS)

    def _ask(self, call: Callable[[], object], until: float | None = None) -> bool:
        """Ask until it is done; returns whether it was, before `until`."""
        while until is None or self._rack.scheduler.now < until:
            try:
                call()
                return True
            except NotFound:
                return True
            except (PondError, oslo_messaging.MessagingTimeout) as error:
                self._rack.scheduler.note(f"OPERATOR is refused: {error}")
            self._rack.scheduler.sleep(PAUSE_SECONDS)
        return False
