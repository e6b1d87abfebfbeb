"""Memory of this host: how much is available, and how much of that may be lent. MiB."""

from collections.abc import Callable
from typing import Self

from oslo_config import cfg

from pondstack.domain.units import MIB
from pondstack_agent.lending.model import Holding
from pondstack_agent.lending.plan import lendable_mib, wanted_back_mib
from pondstack_rdma.host_memory import Room, host_room


class HostRoom:
    """What this host can lend and still serve its own guests.

    `meminfo`: bytes available, and in all. `kept_mib`: what mitigations have reserved and guests may still touch.
    """

    def __init__(
        self, reserve_mib: int, pressure_mib: int, kept_mib: Callable[[], int], meminfo: Room = host_room
    ) -> None:
        self._reserve_mib, self._pressure_mib = reserve_mib, pressure_mib
        self._kept_mib, self._meminfo = kept_mib, meminfo

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, kept_mib: Callable[[], int], meminfo: Room = host_room) -> Self:
        """Build it from the agent's configuration."""
        return cls(conf.lending.reserve_mib, conf.lending.pressure_mib, kept_mib, meminfo)

    def lendable_mib(self, holding: Holding, buffer_mib: int) -> int:
        """Return how much more may be lent now."""
        return lendable_mib(self._available(), self._reserve_mib, self._kept_mib(), holding.promised_mib, buffer_mib)

    def wanted_back_mib(self, holding: Holding) -> int:
        """Return how much of what is lent the host wants back now; 0 without memory pressure."""
        if not holding.buffers:
            return 0
        available = self._available()
        return wanted_back_mib(available, self._reserve_mib, self._pressure_mib, holding.mib, holding.buffer_mib)

    def _available(self) -> int:
        return self._meminfo()[0] // MIB
