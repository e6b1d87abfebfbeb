"""Guests whose memory is lost with the host that they were migrated from: the virt driver ends them, with that reason.

Such a guest waits for ever and reads nothing wrong. As one that Nova cannot run it is in ERROR; a hard reboot boots it.
"""

import time
from collections.abc import Callable
from typing import Any

from nova import context as nova_context
from nova import exception, objects
from nova.compute import utils as compute_utils
from nova.compute import vm_states
from nova.i18n import _
from oslo_log import log as logging

from pondstack.rpc.agent_api import AgentAPI
from pondstack_nova.compute.own_agent import OwnAgent

LOG = logging.getLogger(__name__)


class RemoteMemoryLost(exception.NovaException):
    """A guest has lost a part of its memory."""

    msg_fmt = _(
        "A part of the memory of the server is lost, with the host that it was migrated from. It cannot go on: hard "
        "reboot it"
    )


class LostGuests:
    """Asks a host's agent, in each round of the virt driver. Thread-safe."""

    def __init__(
        self, api: Callable[[], AgentAPI] | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._agent: OwnAgent[list[str]] = OwnAgent("which guests lost their memory", api, clock=clock)

    def read(self, host: str) -> list[str]:
        """Return the guests that cannot go on, by UUID; none where nobody says."""
        return self._agent.ask(lambda api: api.get_lost_guests(host), host, absent=[], silent=[])


def end(node: str, uuid: str, power_off: Callable[[Any], object]) -> bool:
    """End a guest that cannot go on, unless it is on its way, or not this node's; True when it was ended now.

    Nova has it in ERROR before it is off: it would take it for one that was shut down, and stop it.
    """
    context = nova_context.get_admin_context()
    try:
        instance = objects.Instance.get_by_uuid(context, uuid)
    except exception.InstanceNotFound:
        return False  # what it has goes back as of any guest that Nova forgot
    if instance.node != node or instance.task_state is not None:
        return False
    error = RemoteMemoryLost()
    if instance.vm_state != vm_states.ERROR:
        instance.vm_state = vm_states.ERROR
        instance.save(expected_task_state=[None])
        compute_utils.add_instance_fault_from_exc(context, instance, error)
    LOG.error("It is ended: %s", error, instance=instance)
    power_off(instance)
    return True
