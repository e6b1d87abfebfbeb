"""What all parts of an agent are put together from."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from oslo_config import cfg

from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.identity.revocations import Revocations
from pondstack_agent.drivers import HostPools
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.executor import Executor
from pondstack_agent.records import Records
from pondstack_agent.sequence import Sequence


@dataclass(frozen=True)
class AgentContext:
    """One per agent; `executor` may be another one for a part. `open_records` opens a folder of records."""

    conf: cfg.ConfigOpts
    controller: ControllerAPI
    pools: HostPools
    epoch: EpochGuard
    sequence: Sequence
    executor: Executor
    clock: Callable[[], float]
    open_records: Callable[[Path], Records]
    revocations: Revocations = field(default_factory=Revocations)
    boot: str = ""
    """Which boot of the host's kernel it is (pondstack_agent.host.boot)."""

    @property
    def host(self) -> str:
        """The name of the agent's host."""
        name: str = self.conf.host
        return name

    def records(self, folder: str) -> Records:
        """Open a folder of records in the agent's state folder."""
        return self.open_records(Path(self.conf.agent.state_dir) / folder)
