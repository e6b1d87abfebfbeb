"""The virt driver asks its host's agent how much room for mirrors the host has, in each of its rounds."""

import time
from collections.abc import Callable

from pondstack.rpc.agent_api import AgentAPI
from pondstack_nova.compute.own_agent import OwnAgent


class MirrorRoomReader:
    """Asks a host's agent. Thread-safe."""

    def __init__(
        self, api: Callable[[], AgentAPI] | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._agent: OwnAgent[int | None] = OwnAgent("what room for mirrors there is", api, clock=clock)

    def read(self, host: str) -> int | None:
        """Return the MiB of mirrors that a host has room for in all, 0 where it has no data plane; None: unknown."""
        return self._agent.ask(lambda api: int(api.get_mirror_room(host)["total_mib"]), host, absent=0, silent=None)
