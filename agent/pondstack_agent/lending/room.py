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
    `most_mib`: what it lends at most in all, 0: as much as it has.
    """

    def __init__(
        self,
        reserve_mib: int,
        pressure_mib: int,
        kept_mib: Callable[[], int],
        meminfo: Room = host_room,
        *,
        most_mib: int = 0,
    ) -> None:
        self._reserve_mib, self._pressure_mib, self._most_mib = reserve_mib, pressure_mib, most_mib
        self._kept_mib, self._meminfo = kept_mib, meminfo

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, kept_mib: Callable[[], int], meminfo: Room = host_room) -> Self:
        """Build it from the agent's configuration."""
        group = conf.lending
        return cls(group.reserve_mib, group.pressure_mib, kept_mib, meminfo, most_mib=group.most_mib)

    def allowed_mib(self, mib: int) -> int:
        """Return what of a wanted amount may be lent in all, whatever is available."""
        return min(mib, self._most_mib or mib)

    def lendable_mib(self, holding: Holding, buffer_mib: int) -> int:
        """Return how much more may be lent now."""
        left_mib = self._most_mib - holding.mib if self._most_mib else None
        free = (self._available(), self._reserve_mib, self._kept_mib(), holding.promised_mib)
        return lendable_mib(*free, buffer_mib, left_mib)

    def wanted_back_mib(self, holding: Holding) -> int:
        """Return how much of what is lent the host wants back now; 0 without memory pressure."""
        if not holding.buffers:
            return 0
        available = self._available()
        return wanted_back_mib(available, self._reserve_mib, self._pressure_mib, holding.mib, holding.buffer_mib)

    def _available(self) -> int:
        return self._meminfo()[0] // MIB
