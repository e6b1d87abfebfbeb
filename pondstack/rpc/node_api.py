"""Client of one controller by its name, whether it leads or not."""

from pondstack.rpc import targets
from pondstack.rpc.transport import Bus

PING_VERSION = "1.1"
"""The version of the endpoint that ping() came with."""
MIGRATIONS_VERSION = "1.2"
"""The version that ControllerAPI.confirm_migration() came with; any controller answers it."""


class NodeAPI:
    """Calls to the endpoint `pondstack-node` of the controller `name`. Nothing is repeated in here."""

    def __init__(self, bus: Bus, name: str) -> None:
        self._client = bus.client(targets.node_target(name))

    def ping(self, timeout_seconds: float) -> None:
        """Return when it has answered. Raises what oslo.messaging does; takes longer where the network is silent.

        One try to connect again: without a limit the call would outlive the broker's absence.
        """
        self._client.prepare(timeout=timeout_seconds, retry=1, version=PING_VERSION).call({}, "ping")
