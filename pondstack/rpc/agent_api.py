"""Client of the agents. The virt driver calls attach and detach; the controller calls the commands with its epoch."""

from typing import Any

import oslo_messaging

from pondstack.domain.backing import KINDS
from pondstack.domain.requests import AssignRequest
from pondstack.rpc import targets
from pondstack.rpc.agent_doorbell_api import AgentDoorbellAPI
from pondstack.rpc.agent_extension_api import AgentExtensionAPI
from pondstack.rpc.agent_host_api import AgentHostAPI
from pondstack.rpc.agent_lending_api import AgentLendingAPI
from pondstack.rpc.agent_mitigation_api import AgentMitigationAPI
from pondstack.rpc.agent_move_api import AgentMoveAPI
from pondstack.rpc.agent_power_api import AgentPowerAPI
from pondstack.rpc.agent_remote_api import AgentRemoteAPI
from pondstack.rpc.agent_swap_api import AgentSwapAPI
from pondstack.rpc.former import does_not_know
from pondstack.rpc.transport import Bus
from pondstack.rpc.wire import Attachment, Report, to_arguments

HAND_OVER_VERSION = "1.19"
"""The version since which attach() takes the host that a guest moves from."""
TAKE_UP_VERSION = "1.21"
"""The version that take_up() came with, and what a caller of attach() knows."""
REVOKED_VERSION = "1.7"
"""The version that get_revoked() came with."""


class AgentAPI(
    AgentDoorbellAPI,
    AgentExtensionAPI,
    AgentHostAPI,
    AgentLendingAPI,
    AgentMitigationAPI,
    AgentMoveAPI,
    AgentPowerAPI,
    AgentRemoteAPI,
    AgentSwapAPI,
):
    """Calls to the agent of one host. `monitor_seconds`: an agent that is gone is noticed after this long."""

    def __init__(self, bus: Bus, timeout_seconds: float = 60.0, monitor_seconds: int = 10) -> None:
        self._bus = bus
        self._timeout = timeout_seconds
        self._monitor = monitor_seconds

    def _call(self, host: str, method: str, *, version: str | None = None, **arguments: Any) -> Any:
        client = self._bus.client(targets.agent_target(host))
        wanted = {"version": version} if version else {}
        context = client.prepare(timeout=self._timeout, call_monitor_timeout=self._monitor, **wanted)
        return context.call({}, method, **arguments)

    def attach(self, operation_id: str, request: AssignRequest) -> Attachment:
        """Have pool memory assigned and onlined on `request.host` for a guest that is about to be defined.

        Idempotent by the operation id. What the consumer has on `request.source` is handed over where that may be, and
        the attachment says so; an agent of a former release takes other slices. The agent is told which kinds of
        backings this release knows, and refuses others with HostUnusable.
        """
        arguments = {"operation_id": operation_id, **to_arguments(request)}
        host = arguments.pop("host")  # the agent knows its own name
        ways = [(TAKE_UP_VERSION, {**arguments, "backings": list(KINDS)})]
        if arguments.pop("source", ""):
            ways.append((HAND_OVER_VERSION, {**arguments, "source": request.source}))
        for version, known in ways:
            try:
                return Attachment.from_wire(self._call(host, "attach", version=version, **known))
            except oslo_messaging.MessagingException as error:
                if not does_not_know(error):
                    raise
        return Attachment.from_wire(self._call(host, "attach", **arguments))

    def await_guest(self, host: str, *, consumer_uuid: str) -> None:
        """Have a guest awaited whose slices were handed over to `host` (attach): its QEMU leaves them out there.

        Its source has to leave them out, too: QEMU refuses a migration otherwise. Not for one with remote memory, which
        is awaited by receive_guest. Raises NotFound, Conflict.
        """
        self._call(host, "await_guest", version=HAND_OVER_VERSION, consumer_uuid=consumer_uuid)

    def take_up(self, host: str, *, consumer_uuid: str) -> bool:
        """Return whether a guest that came to `host`, paused, with slices of its former host may run there.

        False until the device says that they are this host's alone. Then its CPU caches hold nothing of before. Raises
        NotFound, DeviceFailed, and Conflict when what the guest wrote on its former host is lost.
        """
        return bool(self._call(host, "take_up", version=TAKE_UP_VERSION, consumer_uuid=consumer_uuid))

    def detach(self, host: str, *, operation_id: str, consumer_uuid: str) -> bool:
        """Offline what a consumer holds on this host, once its guest is gone; True when there was something.

        Raises InUse while a process still maps it. The agent tells the controller, again and again if need be.
        """
        return bool(self._call(host, "detach", operation_id=operation_id, consumer_uuid=consumer_uuid))

    def get_attachment(self, host: str, *, consumer_uuid: str) -> Attachment | None:
        """Return what a consumer holds on this host, None when nothing (hard reboot, restart of the guest)."""
        answer = self._call(host, "get_attachment", consumer_uuid=consumer_uuid)
        return Attachment.from_wire(answer) if answer else None

    def get_revoked(self, host: str) -> dict[str, float]:
        """Return since when whose credentials are not believed, in seconds since 1970, by ROLE/NAME.

        An agent of the former release raises oslo.messaging's UnsupportedVersion.
        """
        answer: dict[str, float] = self._call(host, "get_revoked", version=REVOKED_VERSION)
        return answer

    def offline(
        self, host: str, *, epoch: int, operation_id: str, allocation_uuid: str, report_sequence: int | None = None
    ) -> bool:
        """Controller's command: offline an allocation that nobody claims any more; True when the host holds none of it.

        `report_sequence`: the host's report that this was decided on; what came online later is kept. False when its
        memory needs long to go offline: the host goes on and releases it then. Raises StaleEpoch, InUse.
        """
        return bool(
            self._call(
                host,
                "offline",
                epoch=epoch,
                operation_id=operation_id,
                allocation_uuid=allocation_uuid,
                report_sequence=report_sequence,
            )
        )

    def report(self, host: str, *, epoch: int) -> Report:
        """Return what is really attached now; raises StaleEpoch."""
        return Report.from_wire(self._call(host, "report", epoch=epoch))
