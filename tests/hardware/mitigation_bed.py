"""An emulated host with a CXL device, and the agent in it: where guests are moved to local memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pondstack.devices import pool_uuid
from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.model import Extent, indexes_of
from pondstack.rpc.wire import Grant
from pondstack_rack.wait import POLL_SECONDS, Deadline

from . import inner_guest
from .channel import DEADLINE_SECONDS
from .conftest import Hardware
from .cxl_rack import SERIAL, TABLE, make_device
from .host import EmulatedHost
from .machine import Machine

HOST, GUEST = "host1", "/mnt/guest"
SLICES, SLICE_MIB, CHUNK_MIB = 4, 128, 8


@contextmanager
def mitigation_bed(hardware: Hardware, folder: Path) -> "Iterator[Bed]":
    """Boot the host, with what its guests boot from."""
    make_device(folder / "device", SLICES, SLICE_MIB)
    inner_guest.build(hardware.files, folder / "guest")
    shares = {TABLE: folder / "device", GUEST: folder / "guest"}
    with hardware.hosts(Machine(HOST, (folder / "device/memory",), shares=shares)) as [host]:
        yield Bed(host, folder / "device")


class Bed:
    """A host with a device, and the agent in it."""

    def __init__(self, host: EmulatedHost, folder: Path) -> None:
        self.host, self.device = host, EmulatedDevice(folder)
        self.agent: Any = host.remote(
            "tests.hardware.guest.mitigated:Agent", host=HOST, serial=SERIAL, table=TABLE, chunk_mib=CHUNK_MIB
        )
        self._granted: dict[str, Grant] = {}

    def grant(self, name: str, first: int, count: int) -> Grant:
        """Have the device let the host use slices for guest `name`."""
        tag, extents = f"allocation-{name}", (Extent(first, count),)
        self.device.grant(HOST, extents, tag=tag, epoch=1)
        grant = Grant(tag, name, HOST, pool_uuid(SERIAL), "pool0", {}, SLICE_MIB, extents, 1)
        self._granted[tag] = grant
        return grant

    def take_back(self, grant: Grant) -> None:
        """What the controller does at a release: revoke, sanitise."""
        for index in indexes_of(grant.extents):
            self.device.revoke([index], tag=grant.allocation_uuid, epoch=1)
            self.device.sanitize(index, epoch=1)
        del self._granted[grant.allocation_uuid]

    def clear(self) -> None:
        """Have the agent let go of what a failed test has left, and take it back."""
        left = list(self._granted.values())
        if not left:
            return
        self.agent.restart()
        attached = self.agent.attached()
        for grant in left:
            if grant.allocation_uuid in attached:
                self.agent.detach(grant.consumer_uuid)
        self.until(lambda: self.agent.attached() == {})
        for grant in left:
            self.take_back(grant)

    def until(self, what: Callable[[], Any], poll_seconds: float = POLL_SECONDS) -> Any:
        """Wait until something is so."""
        deadline = Deadline(DEADLINE_SECONDS)
        while not (found := what()):
            assert not deadline.over
            deadline.pause(poll_seconds)
        return found

    def ended(self, consumer: str) -> Any:
        """Wait until a mitigation has ended."""
        return self.until(lambda: (now := self.agent.progress(consumer)).state != "moving" and now)
