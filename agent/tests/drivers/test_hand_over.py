"""Emulated slices that are handed over: two hosts have them online, and each goes by its own guest."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent.tests.drivers.test_contract import guest
from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.errors import InUse, PermissionHeld
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Backing, Grant
from pondstack_agent.drivers.emulated import EmulatedHostPool
from pondstack_agent.qemu.attachment_lock import FOLDER, hold
from pondstack_agent.qemu.wrapper import Refused, check_permission, find_attachment

SLICES = (Extent(0, 2),)


class Move:
    """A guest of host1 that moves to host2: the drivers of both, and the grants."""

    def __init__(self, folder: Path, device: EmulatedDevice, own: Grant) -> None:
        self.device, self.own, self._folder = device, own, folder
        self.heir = replace(own, allocation_uuid=f"heir-of-{own.allocation_uuid[:8]}", host="host2", handed=True)
        device.add_heir("host2", SLICES, tag=self.heir.allocation_uuid, owner=own.allocation_uuid, epoch=1)
        paths = [str(device.path)]
        self.source = EmulatedHostPool(host="host1", state_dir=folder / "host1", device_paths=paths)
        self.destination = EmulatedHostPool(host="host2", state_dir=folder / "host2", device_paths=paths)

    def switch(self) -> None:
        """Have the device follow the source's release."""
        self.device.revoke([0, 1], tag=self.own.allocation_uuid, epoch=1)

    @contextmanager
    def run(self, grant: Grant, backing: Backing) -> Iterator[bytes]:
        """Run the guest on a host, as the head of QEMU starts it; yields what it finds."""
        record = self._folder / grant.host / FOLDER / f"{grant.allocation_uuid}.json"
        lock = hold(record)
        try:
            with guest(grant, backing, "the guest's") as seen:
                yield seen
        finally:
            os.close(lock)


@pytest.fixture
def move(tmp_path: Path, device: EmulatedDevice, make_grant) -> Move:
    return Move(tmp_path, device, make_grant(*SLICES))


def in_use(driver: EmulatedHostPool) -> list[bool]:
    return [item.in_use for item in driver.attached()]


def test_each_host_goes_by_its_own_guest(move: Move) -> None:
    [here] = move.source.attach(move.own)
    with move.run(move.own, here):
        [there] = move.destination.attach(move.heir)
        assert (in_use(move.source), in_use(move.destination)) == ([True], [False])
        with move.run(move.heir, there) as seen:
            assert seen == b"the guest's"
            assert (in_use(move.source), in_use(move.destination)) == ([True], [True])
            with pytest.raises(InUse):
                move.source.detach(move.own.allocation_uuid)
            with pytest.raises(InUse):
                move.destination.detach(move.heir.allocation_uuid)
        assert move.destination.detach(move.heir.allocation_uuid), "the move failed"


def test_the_source_lets_go_while_the_guest_runs_at_the_destination(move: Move) -> None:
    move.source.attach(move.own)
    [there] = move.destination.attach(move.heir)
    with move.run(move.heir, there):
        assert move.source.detach(move.own.allocation_uuid)
        move.switch()
        assert in_use(move.destination) == [True]
        with pytest.raises(InUse):
            move.destination.detach(move.heir.allocation_uuid)


def test_afterwards_any_process_that_maps_them_counts(move: Move) -> None:
    move.source.attach(move.own)
    [there] = move.destination.attach(move.heir)
    move.switch()
    with guest(move.heir, there, "x"):
        assert in_use(move.destination) == [True]


def test_a_grant_that_is_not_handed_over_does_not_make_an_heir(move: Move) -> None:
    with pytest.raises(PermissionHeld):
        move.destination.attach(replace(move.heir, handed=False))
    with pytest.raises(PermissionHeld):
        move.destination.attach(replace(move.heir, allocation_uuid="another"))


def test_the_head_of_a_guest_is_let_in_as_an_heir(move: Move, tmp_path: Path) -> None:
    move.destination.attach(move.heir)
    found = find_attachment(tmp_path / "host2", move.heir.consumer_uuid)
    assert found is not None
    record = found[1]
    check_permission(record, "host2")
    for wrong in ({**record, "handed": False}, {**record, "allocation_uuid": "another"}):
        with pytest.raises(Refused):
            check_permission(wrong, "host2")
    with pytest.raises(Refused):
        check_permission(record, "host3")
    move.switch()
    check_permission(record, "host2")


def test_an_heir_whose_record_is_lost_is_reported(move: Move, tmp_path: Path) -> None:
    [there] = move.destination.attach(move.heir)
    for record in (tmp_path / "host2").rglob("*.json"):
        record.unlink()
    with guest(move.heir, there, "x"):
        assert [item.allocation_uuid for item in move.destination.attached()] == [move.heir.allocation_uuid]
