"""A guest that moves live and takes its slices along, as Nova and hypervisors see to it."""

from typing import TYPE_CHECKING

import oslo_messaging

from pondstack.domain.errors import PondError, Unavailable
from pondstack.rpc.wire import Attachment

if TYPE_CHECKING:
    from tests.sim.nova import Instance, Nova
    from tests.sim.rack import Rack

TAKE_UP_TRIES = 60
"""So long as the source may need to write its caches back, or to get power again."""


class HandedMove:
    """One move, to a host where the slices are attached by now."""

    def __init__(self, rack: "Rack", nova: "Nova", instance: "Instance", target: str, attached: Attachment) -> None:
        self._rack, self._nova, self._instance = rack, nova, instance
        self._source, self._target, self._attached = instance.host, target, attached

    def run(self, seconds: float) -> bool:
        """Return whether the guest left its source; False: it is to go on where it was."""
        rack, name, old = self._rack, self._instance.name, self._instance.held
        assert old is not None
        runs_on, source = self._nova.power(self._target), rack.hosts[self._source]
        rack.scheduler.sleep(seconds)
        running = (self._source, name) in rack.watch.running
        if not (running and source.up and runs_on()):
            return False
        # Its hypervisor at the source has stopped it, and still maps its slices, until the other one has it.
        rack.watch.stopped(self._source, name)
        rack.moments.pass_by("guest")
        if runs_on():
            rack.watch.came_along(old)
            if self._arrive(old.allocation_uuid):
                return True
        if source.up and f"{name}@{self._source}" in source.memory.mapped:
            rack.watch.started(old)
        return False

    def _arrive(self, allocation_uuid: str) -> bool:
        if self._rack.history.caches:
            self._arrive_paused(allocation_uuid)
            return True
        if not self._nova.run(self._instance, self._target, self._attached):
            return False
        self._leave()
        return True

    def _leave(self) -> None:
        self._rack.watch.forget(self._source, self._instance.name)
        self._nova.stop(self._instance, self._source)
        self._nova.detach(self._instance, self._source)

    def _arrive_paused(self, allocation_uuid: str) -> None:
        """Have the guest go on once its slices are taken up; one that may not run is deleted by its owner."""
        instance, runs_on = self._instance, self._nova.power(self._target)
        instance.host, instance.off = self._target, True
        self._leave()
        if self._take_up() and runs_on():
            self._rack.caches.check_whole(allocation_uuid)
            instance.off = not self._nova.run(instance, self._target, self._attached)
        if instance.off:
            self._nova.give_up(instance)

    def _take_up(self) -> bool:
        """Return whether the guest may run."""
        name, scheduler = self._instance.name, self._rack.scheduler
        for _ in range(TAKE_UP_TRIES):
            if not self._rack.hosts[self._target].up:
                return False
            try:
                if self._nova.agents.take_up(self._target, consumer_uuid=name):
                    return True
            except (Unavailable, oslo_messaging.MessagingTimeout) as error:
                scheduler.note(f"take up {name}: {error}")
            except PondError as error:
                scheduler.note(f"take up {name} refused: {error}")
                return False
            scheduler.sleep(0.3)
        return False
