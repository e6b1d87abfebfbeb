"""The virt driver asks its host's agent what the host lends, in each of its rounds and at each claim of Nova's."""

import time
from collections.abc import Callable

from pondstack.domain.admission import LentReport
from pondstack.rpc.agent_api import AgentAPI
from pondstack_nova.compute.lent_inventory import Unknown
from pondstack_nova.compute.own_agent import OwnAgent


class LentMemoryReader:
    """Asks a host's agent what the host lends. Thread-safe."""

    def __init__(
        self, api: Callable[[], AgentAPI] | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._agent: OwnAgent[LentReport | Unknown] = OwnAgent("what the host lends", api, clock=clock)

    def read(self, host: str) -> LentReport | Unknown:
        """Return what a host lends, or why that is not known."""
        return self._agent.ask(lambda api: api.get_lent(host), host, absent=Unknown.NO_PART, silent=Unknown.SILENT)
