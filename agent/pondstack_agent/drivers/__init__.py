"""The pool drivers of this host as one: by stevedore, from [agent] drivers."""

from collections.abc import Collection, Sequence
from typing import Any

from oslo_config import cfg
from stevedore.named import NamedExtensionManager

from pondstack.domain.backing import DEVDAX, UNKNOWN
from pondstack.domain.errors import HostUnusable, NotFound
from pondstack.domain.zeroing import refusal
from pondstack.rpc.wire import Attached, Backing, Grant
from pondstack_agent.drivers.base import HostPoolDriver

ENTRY_POINTS = "pondstack.host_pools"


class HostPools:
    """All pools of this host, whatever their drivers; the same verbs as one driver."""

    def __init__(self, drivers: Sequence[HostPoolDriver]) -> None:
        self._drivers = drivers

    def pools(self) -> tuple[str, ...]:
        """Return the UUIDs of all pools that answer."""
        return tuple(pool for driver in self._drivers for pool in driver.pools())

    def zeroing(self) -> dict[str, str]:
        """Return what this host does with the slices of each pool before it gives them back."""
        return {pool: str(driver.zeroing()) for driver in self._drivers for pool in driver.pools()}

    def attach(self, grant: Grant) -> tuple[Backing, ...]:
        """Online a grant by the driver that reaches its pool; raises HostUnusable, PermissionHeld, DeviceFailed."""
        for driver in self._drivers:
            if grant.pool_uuid in driver.pools():
                # The controller refuses it, too; it may not have heard yet how this host is set up now.
                if why := refusal(grant.device.get("memory"), driver.zeroing()):
                    raise HostUnusable(f"host {grant.host} gets nothing of pool {grant.pool_name}: {why}")
                return driver.attach(grant)
        raise HostUnusable(
            f"host {grant.host} does not reach pool {grant.pool_uuid}; check the drivers and devices in the agent's "
            "configuration"
        )

    def detach(self, allocation_uuid: str) -> bool:
        """Offline an allocation wherever it is; False when no driver holds it. Raises InUse."""
        # Every driver is asked: one that does not hold it may still know of a process on its slices.
        return any([driver.detach(allocation_uuid) for driver in self._drivers])

    def hands_over(self) -> tuple[str, ...]:
        """Return the pools whose slices this host takes over from others, with their content."""
        return tuple(pool for driver in self._drivers if driver.hands_over for pool in driver.pools())

    def heir(self, allocation_uuid: str) -> str:
        """Return the host that an attached allocation is being handed over to, "" for none; raises DeviceFailed."""
        return next((host for driver in self._drivers if (host := driver.heir(allocation_uuid))), "")

    def lost_caches(self, allocation_uuid: str) -> bool:
        """Tell whether this host restarted while an allocation was being handed over; raises DeviceFailed."""
        return any(driver.lost_caches(allocation_uuid) for driver in self._drivers)

    def take_up(self, allocation_uuid: str) -> bool:
        """Return whether the guest that slices were handed over with may run here; raises NotFound, DeviceFailed."""
        for driver in self._drivers:
            if any(item.allocation_uuid == allocation_uuid for item in driver.attached()):
                return driver.take_up(allocation_uuid)
        raise NotFound(f"allocation {allocation_uuid} is not attached to this host; attach it first")

    def check_known(self, pool_uuid: str, kinds: Collection[str]) -> None:
        """Raise HostUnusable where a guest's slices would be of a kind that its nova-compute does not know.

        It would give the guest memory of the host instead, and nobody would have claimed it. A driver that does not say
        what its slices are has one of the kinds that always were.
        """
        for driver in self._drivers:
            if pool_uuid in driver.pools() and driver.backing not in (*kinds, UNKNOWN):
                raise HostUnusable(
                    f"slices of pool {pool_uuid} are {driver.backing} here, which the nova-compute that asks for them "
                    "does not know; upgrade it, or set [cxl] backing = kmem"
                )

    def needs_write_back(self, pool_uuid: str) -> bool:
        """Tell whether guests of this host read a pool past the CPU caches of other hosts."""
        return any(pool_uuid in driver.pools() and driver.backing == DEVDAX for driver in self._drivers)

    @property
    def nodes(self) -> bool:
        """Whether pool memory of this host is nodes of its kernel."""
        return any(driver.nodes for driver in self._drivers)

    @property
    def slow_detach(self) -> bool:
        """Whether a driver of this host may need long for a detach."""
        return any(driver.slow_detach for driver in self._drivers)

    def begin_detach(self, allocation_uuid: str) -> bool:
        """Keep everybody off an allocation whose detach takes long; False when no such driver holds it. Raises InUse.

        After True, `detach` is for the background.
        """
        return any([driver.begin_detach(allocation_uuid) for driver in self._drivers if driver.slow_detach])

    def vacate(self, allocation_uuid: str) -> None:
        """Note that a guest runs on without its allocation; raises InUse, NotFound, BadRequest."""
        for driver in self._drivers:
            if any(item.allocation_uuid == allocation_uuid for item in driver.attached()):
                driver.vacate(allocation_uuid)
                return
        raise NotFound(f"allocation {allocation_uuid} is not attached to this host; attach it first")

    def evacuations(self) -> dict[int, int | None]:
        """Return by node of the host how often memory of it was taken offline, None while that goes on."""
        return {node: count for driver in self._drivers for node, count in driver.evacuations().items()}

    def stuck(self) -> dict[str, str]:
        """Return the allocations that do not go offline: UUID to reason."""
        return {key: reason for driver in self._drivers for key, reason in driver.stuck().items()}

    def attached(self) -> tuple[Attached, ...]:
        """Return what is really attached."""
        return tuple(item for driver in self._drivers for item in driver.attached())

    def held_by(self, consumer_uuid: str) -> list[Attached]:
        """Return what is really attached for a consumer."""
        return [item for item in self.attached() if item.consumer_uuid == consumer_uuid]

    def backings(self, allocation_uuid: str) -> tuple[Backing, ...]:
        """Return the backings of an attached allocation; raises NotFound."""
        for driver in self._drivers:
            try:
                return driver.backings(allocation_uuid)
            except NotFound:
                continue
        raise NotFound(f"allocation {allocation_uuid} is not attached to this host; attach it first")


def load_drivers(conf: cfg.ConfigOpts) -> HostPools:
    """Build the drivers that the configuration names; an unknown or broken one stops the agent at its start."""
    manager: NamedExtensionManager[Any] = NamedExtensionManager(
        ENTRY_POINTS,
        names=conf.agent.drivers,
        name_order=True,
        on_load_failure_callback=_raise,
    )
    missing = ", ".join(sorted(set(conf.agent.drivers) - set(manager.names())))
    if missing:
        raise ValueError(f"[agent] drivers names {missing}, which is no entry point of {ENTRY_POINTS}")
    return HostPools([extension.plugin.from_conf(conf) for extension in manager])


def _raise(_manager: object, _entry_point: object, error: BaseException) -> None:
    raise error
