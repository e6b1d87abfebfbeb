"""RPC endpoint of pondstack-agent for its host's sleep (pondstack.rpc.agent_power_api); its waker does it."""

from pathlib import Path
from typing import Any

import oslo_messaging

from pondstack.rpc.agent_power_api import POWER_VERSION
from pondstack_agent.context import AgentContext
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.power.client import WakerClient
from pondstack_agent.rpc_errors import answered


class PowerEndpoint:
    """The methods that the controller calls. That of a host that sleeps does not answer."""

    target = oslo_messaging.Target(version=POWER_VERSION)

    def __init__(self, waker: WakerClient, epoch: EpochGuard) -> None:
        self._waker, self._epoch = waker, epoch

    @classmethod
    def from_context(cls, context: AgentContext) -> "PowerEndpoint":
        """Return that of an agent, which starts no process yet."""
        conf = context.conf
        folder = Path(conf.power.waker_folder or Path(conf.agent.state_dir) / "waker")
        waker = WakerClient(folder, conf.config_file or (), conf.power.launcher, conf.power.waker_timeout_seconds)
        return cls(waker, context.epoch)

    @answered
    def suspend(self, _context: Any, *, epoch: int, operation_id: str, driver: str) -> dict[str, Any]:
        """Have the host sleep soon; answers before."""
        self._epoch.check(epoch)
        return self._waker.enter(operation_id, driver)

    @answered
    def get_power(self, _context: Any) -> dict[str, Any]:
        """Return how far the newest transition is."""
        return self._waker.told()
