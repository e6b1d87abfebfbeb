"""The BMC of an emulated host: Redfish by the emulator of sushy-tools, over QEMU's monitor. In this process, no port.

sushy-tools' own drivers know no sleep. This one is for tests: a host in S3 reads as off, as its main power rail is, and
On presses its power button, which QEMU takes for a wake-up.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import PropertyMock, patch

import wsgi_intercept
from sushy_tools import error
from sushy_tools.emulator import main as emulator
from sushy_tools.emulator.resources.systems.base import AbstractSystemsDriver
from wsgi_intercept.interceptor import RequestsInterceptor

from pondstack.clients.bmc import Redfish

from .host import EmulatedHost

UUID = "27946b59-9e44-4fa7-8e91-f3527a1ef094"
NAME = "bmc.hardware"


class QemuSystems(AbstractSystemsDriver):  # type: ignore[misc]
    """One system, an emulated host with a wire. `orders`: what it was told to become."""

    driver = "<qemu>"
    systems = (UUID,)

    def __init__(self, host: EmulatedHost) -> None:
        self._host = host
        self.orders: list[str] = []

    def uuid(self, identity: str) -> str:
        """Return its UUID."""
        if identity not in (UUID, self._host.machine.name):
            raise error.NotFound(f"no system {identity}")
        return UUID

    def name(self, identity: str) -> str:
        """Return its name."""
        self.uuid(identity)
        return self._host.machine.name

    def get_power_state(self, identity: str) -> str:
        """Return On or Off."""
        self.uuid(identity)
        return "Off" if self._host.state in ("off", "suspended") else "On"

    def set_power_state(self, identity: str, state: str) -> None:
        """Do what is ordered, at once."""
        self.uuid(identity)
        self.orders.append(state)
        match state, self._host.state:
            case "On" | "ForceOn", "suspended":
                self._host.wake()
            case "On" | "ForceOn", "off":
                self._host.power_on()
            case "On" | "ForceOn", _:
                pass
            case "ForceOff", _:
                self._host.power_off()
            case "ForceRestart", _:
                self._host.reboot()
            case _:
                raise error.NotSupportedError(state)

    def get_boot_device(self, identity: str) -> str:
        """Return what it boots from."""
        self.uuid(identity)
        return "Hdd"

    def set_boot_device(self, identity: str, boot_source: str) -> None:
        """Refuse."""
        raise error.NotSupportedError(f"{identity} does not boot from {boot_source}")


class EmulatedBmc:
    """What a controller has of it, and what it was told."""

    def __init__(self, url: str, systems: QemuSystems) -> None:
        self.redfish = Redfish.of({"url": url, "system": f"/redfish/v1/Systems/{UUID}"})
        self._systems = systems

    @property
    def orders(self) -> list[str]:
        """What it was told to become, by Redfish's names."""
        return self._systems.orders


@contextmanager
def emulated_bmc(host: EmulatedHost) -> Iterator[EmulatedBmc]:
    """Have a host with a wire be reached by Redfish."""
    systems = QemuSystems(host)
    with patch.object(emulator.Application, "systems", PropertyMock(return_value=systems)):
        try:
            with RequestsInterceptor(lambda: emulator.app, host=NAME, port=80) as url:
                yield EmulatedBmc(url, systems)
        finally:
            wsgi_intercept.remove_wsgi_intercept(NAME, 80)
