"""RPC endpoint of pondstack-agent for sleep: of its host, whose waker does it, and of those that it is to wake.

pondstack.rpc.agent_power_api, agent_doorbell_api.
"""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import oslo_messaging

from pondstack.rpc.agent_power_api import END_VERSION
from pondstack_agent.context import AgentContext
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.power.client import WakerClient
from pondstack_agent.power.ended_suspension import EndedSuspension
from pondstack_agent.power.ringer import Ringer
from pondstack_agent.rpc_errors import answered
from pondstack_rdma.transports import load_transport, options_of


class PowerEndpoint:
    """The methods that the controller calls. That of a host that sleeps does not answer."""

    target = oslo_messaging.Target(version=END_VERSION)

    def __init__(self, waker: WakerClient, ringer: Ringer, epoch: EpochGuard, ended: EndedSuspension) -> None:
        self._waker, self._ringer, self._epoch, self._ended = waker, ringer, epoch, ended
        self._lock = threading.Lock()

    @classmethod
    def from_context(cls, context: AgentContext) -> "PowerEndpoint":
        """Return that of an agent, which starts no process yet."""
        conf = context.conf
        folder = Path(conf.power.waker_folder or Path(conf.agent.state_dir) / "waker")
        waker = WakerClient(folder, conf.config_file or (), conf.power.launcher, conf.power.waker_timeout_seconds)
        lending = conf.lending
        rings = conf.power.doorbell and lending.transport
        transport = load_transport(lending.transport, options_of(lending)) if rings else None
        return cls(
            waker,
            Ringer(transport, conf.power.doorbell_seconds),
            context.epoch,
            EndedSuspension(context.records("marks")),
        )

    @answered
    def suspend(self, _context: Any, *, epoch: int, operation_id: str, driver: str) -> dict[str, Any]:
        """Have the host sleep soon; answers before."""
        self._epoch.check(epoch)
        with self._lock:
            self._ended.check(operation_id)
            return self._waker.enter(operation_id, driver)

    @answered
    def end_suspension(self, _context: Any, *, epoch: int, operation_id: str) -> dict[str, Any]:
        """Refuse an order to sleep from now on; the answer tells whether the host sleeps by it nevertheless (1.20)."""
        self._epoch.check(epoch)
        with self._lock:
            self._ended.end(operation_id)
        return self._waker.told()

    @answered
    def get_power(self, _context: Any) -> dict[str, Any]:
        """Return how far the newest transition is."""
        return self._waker.told()

    @answered
    def arm_doorbell(self, _context: Any, *, epoch: int, operation_id: str, ringers: Sequence[str]) -> dict[str, Any]:
        """Have other hosts ring for one sleep of this one."""
        self._epoch.check(epoch)
        return self._waker.arm(operation_id, ringers)

    @answered
    def connect_doorbell(
        self, _context: Any, *, epoch: int, operation_id: str, sleeper: str, ring: Mapping[str, Any]
    ) -> None:
        """Connect to the doorbell of a host that is about to sleep."""
        self._epoch.check(epoch)
        self._ringer.connect(sleeper, operation_id, ring)

    @answered
    def ring_doorbell(self, _context: Any, *, epoch: int, operation_id: str, sleeper: str) -> None:
        """Ring it."""
        self._epoch.check(epoch)
        self._ringer.ring(sleeper, operation_id)
