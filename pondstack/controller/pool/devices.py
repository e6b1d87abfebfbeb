"""The pool devices of this rack: drivers by stevedore, their health, their registration in the ledger."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from oslo_log import log
from stevedore import driver as stevedore_driver
from stevedore.exception import NoMatches

from pondstack.devices.base import DeviceInfo, PoolDevice
from pondstack.devices.identity import pool_uuid
from pondstack.domain.errors import BadRequest, Conflict, DeviceFailed, PondError
from pondstack.domain.model import PoolState
from pondstack.ledger.ledger import Ledger

LOG = log.getLogger(__name__)
NAMESPACE = "pondstack.pool_devices"


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """One entry of [controller] pool_devices."""

    name: str
    driver: str
    address: str


@dataclass(frozen=True, slots=True)
class PoolAbout:
    """What agents are told of a pool; it does not change while its device is registered."""

    name: str
    address: Mapping[str, Any]
    slice_mib: int
    slices_total: int


def parse_spec(text: str) -> DeviceSpec:
    """Parse `name=driver:address`; raises BadRequest with the legal form."""
    name, equals, rest = text.partition("=")
    driver, colon, address = rest.partition(":")
    if not (name.strip() and equals and driver.strip() and colon and address.strip()):
        raise BadRequest(f"[controller] pool_devices: {text!r} is wrong; it must be name=driver:address")
    return DeviceSpec(name.strip(), driver.strip(), address.strip())


def load_device(spec: DeviceSpec) -> PoolDevice:
    """Return the driver object of a device; raises BadRequest for an unknown driver."""
    try:
        manager: stevedore_driver.DriverManager[PoolDevice] = stevedore_driver.DriverManager(
            NAMESPACE, spec.driver, invoke_on_load=True, invoke_args=(spec.address,), on_load_failure_callback=_reraise
        )
    except NoMatches as error:
        raise BadRequest(f"[controller] pool_devices: there is no driver {spec.driver!r} in {NAMESPACE}") from error
    return cast(PoolDevice, manager.driver)


def _reraise(_manager: object, entry_point: object, error: BaseException) -> None:
    LOG.error("Driver %s cannot be loaded: %s", entry_point, error)
    raise error


class DeviceRegistry:
    """The devices by pool UUID. Each check tries again to register a device that has not answered yet. Thread-safe."""

    def __init__(
        self,
        ledger: Ledger,
        specs: Iterable[DeviceSpec],
        load: Callable[[DeviceSpec], PoolDevice] = load_device,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._waiting = {spec: load(spec) for spec in specs}
        self._names = {spec.name for spec in self._waiting}
        self._devices: dict[str, PoolDevice] = {}
        self._about: dict[str, PoolAbout] = {}
        self._clock = clock
        self._failing: dict[str, float] = {}
        self._lock = threading.Lock()

    def get(self, uuid: str) -> PoolDevice:
        """Return the device of a pool; raises DeviceFailed when it has none."""
        try:
            return self._devices[uuid]
        except KeyError:
            raise DeviceFailed(f"pool {uuid} has no device; see [controller] pool_devices and the log") from None

    def about(self, uuid: str) -> PoolAbout:
        """Return the description of a pool; raises DeviceFailed when it has no device."""
        self.get(uuid)
        return self._about[uuid]

    def memory(self, uuid: str) -> str | None:
        """Return what the memory of a pool's device is (domain.zeroing), None when it is not registered."""
        about = self._about.get(uuid)
        return None if about is None else str(about.address["memory"])

    def has(self, uuid: str, name: str) -> bool:
        """Return whether a pool's device is configured here, by its serial number or by its name if it is silent."""
        return uuid in self._devices or name in self._names

    def uuids(self) -> tuple[str, ...]:
        """Return the pools whose devices are registered."""
        return tuple(self._devices)

    def register(self) -> tuple[str, ...]:
        """Register the devices that answer for the first time; returns their pools' UUIDs.

        From then on each device refuses the commands of former leaders, before any of its slices is granted or zeroed.
        """
        with self._lock:
            return tuple(uuid for spec in list(self._waiting) if (uuid := self._register(spec)))

    def _register(self, spec: DeviceSpec) -> str | None:
        device = self._waiting[spec]
        try:
            info = device.info()
            device.raise_epoch(self._ledger.epoch)
            uuid = pool_uuid(info.serial)
            if uuid in self._devices:
                raise Conflict(f"device {info.serial} is listed twice in [controller] pool_devices")
            self._write_down(spec, uuid, info)
        except (DeviceFailed, Conflict) as error:
            LOG.error("Pool %s is not registered: %s", spec.name, error)
            return None
        self._about[uuid] = PoolAbout(spec.name, _address(spec, info), info.slice_mib, info.slices_total)
        self._devices[uuid] = device
        del self._waiting[spec]
        LOG.info("Pool %s (%s): %d slices of %d MiB", spec.name, uuid, info.slices_total, info.slice_mib)
        return uuid

    def _write_down(self, spec: DeviceSpec, uuid: str, info: DeviceInfo) -> None:
        self._ledger.pools.register(
            uuid=uuid,
            name=spec.name,
            serial=info.serial,
            driver=spec.driver,
            address=_address(spec, info),
            slice_mib=info.slice_mib,
            slices_total=info.slices_total,
        )

    def check(self, known: Mapping[str, PoolState]) -> None:
        """Probe each pool's device and record changes of its health; `known`: the states in the ledger."""
        self.register()
        for uuid, state in known.items():
            try:
                self.get(uuid).info()
                seen = PoolState.UP
                self._failing.pop(uuid, None)
            except PondError as error:
                seen = PoolState.FAILED
                self._failing.setdefault(uuid, self._clock())
                if state is not seen:
                    LOG.error("Pool %s has failed: %s", uuid, error)
            if seen is not state and self._ledger.pools.set_state(uuid, seen):
                LOG.info("Pool %s is %s", uuid, seen)

    def failing(self) -> dict[str, float]:
        """Return for how many seconds, by our checks, each device that does not answer now has not answered."""
        now = self._clock()
        return {uuid: now - since for uuid, since in list(self._failing.items())}


def _address(spec: DeviceSpec, info: DeviceInfo) -> dict[str, Any]:
    return {"driver": spec.driver, "memory": str(info.memory), **info.address}
