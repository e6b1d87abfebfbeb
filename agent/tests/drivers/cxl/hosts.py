"""Two hosts over one CXL device, as kernels that share its bytes, and guests that map their slices there."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.tests.drivers.cxl.kernel import CXL_SERIAL, SLICE_BYTES, SLICES, Kernel
from agent.tests.drivers.test_contract import Harness
from pondstack.devices.emulated import EmulatedDevice, create_device
from pondstack.domain.backing import DEVDAX
from pondstack.domain.zeroing import DeviceMemory
from pondstack.rpc.wire import Backing, Grant
from pondstack_agent.drivers.cxl.driver import CxlHostPool
from pondstack_agent.drivers.cxl.returns import Settings
from pondstack_agent.qemu.attachment_lock import hold

SERIAL = "contract"


class Killed(BaseException):
    """The agent ended here."""


class Device(EmulatedDevice):
    """The controller's side: it zeroes what the hosts' devices are made of."""

    content: bytearray

    def sanitize(self, index: int, *, epoch: int) -> None:
        super().sanitize(index, epoch=epoch)
        self.content[index * SLICE_BYTES : (index + 1) * SLICE_BYTES] = bytes(SLICE_BYTES)

    def check_unreachable(self, indexes: Any) -> None:
        """Nobody maps the folder's file."""


class Host:
    """One host: its kernel, its agent's state folder, and drivers."""

    def __init__(self, name: str, folder: Path, table: Path, content: bytearray, patch: pytest.MonkeyPatch) -> None:
        self.name, self.state = name, folder / name / "state"
        self.kernel = Kernel(folder / name, content)
        self._table, self._patch = table, patch
        self.steps: list[str] = []

    def agent(
        self, *, kill_at: int | str | None = None, zero: bool = False, backing: str = DEVDAX, table: bool = True
    ) -> Any:
        """Start an agent, to be killed at a step, by number or name; its steps are counted from here.

        `table`: it sees the permission table.
        """
        self.steps = []

        def step(name: str) -> None:
            if kill_at in (name, len(self.steps)):
                raise Killed(name)
            self.steps.append(name)

        self.kernel.install(self._patch)
        driver = CxlHostPool(
            host=self.name,
            state_dir=self.state,
            pools={CXL_SERIAL: SERIAL},
            permission_tables=[str(self._table)] if table else [],
            settings=Settings(zero_on_host=zero, backing=backing),
            sysfs=self.kernel,
            step=step,
        )
        return _OnHost(self.kernel, driver, self._patch)

    @contextmanager
    def guest(self, grant: Grant, backing: Backing, text: str) -> Iterator[bytes]:
        """Run a guest that maps a backing, as its head starts it; yields what it found before it wrote."""
        lock = hold(self.state / "cxl" / f"{grant.allocation_uuid}.json")
        self.kernel.guests[grant.consumer_uuid] = backing.path
        try:
            found = self.kernel.load(backing.path, 0, len(text))
            self.kernel.store(backing.path, 0, text.encode())
            yield found
        finally:
            del self.kernel.guests[grant.consumer_uuid]
            os.close(lock)


class Rack:
    """host1 and host2 over one device."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, slices: int = SLICES) -> None:
        table = create_device(folder / "device", slices, slice_mib=1, serial=SERIAL, memory=DeviceMemory.CXL).path
        content = bytearray(slices * SLICE_BYTES)
        self.device = Device(table)
        self.device.content = content
        self.hosts = {name: Host(name, folder, table, content, patch) for name in ("host1", "host2")}

    def harness(self) -> Harness:
        """Return what the contract of drivers is tested with."""
        return Harness(self.device, lambda name: self.hosts[name].agent(), self._guest, self._lose_state)

    def _guest(self, grant: Grant, backing: Backing, text: str) -> AbstractContextManager[bytes]:
        return self.hosts[grant.host].guest(grant, backing, text)

    def _lose_state(self, name: str) -> None:
        for record in self.hosts[name].state.rglob("*.json"):
            record.unlink()


class _OnHost:
    """A driver whose calls meet the kernel of its own host."""

    def __init__(self, kernel: Kernel, driver: CxlHostPool, patch: pytest.MonkeyPatch) -> None:
        self._kernel, self._driver, self._patch = kernel, driver, patch

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._driver, name)
        if not callable(found):
            return found

        def call(*arguments: Any) -> Any:
            self._kernel.install(self._patch)
            return found(*arguments)

        return call
