"""The driver `dcd` against QEMU's dynamic-capacity device: the contract of all pool devices, and what is its own."""

import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pondstack.devices.dcd import DcdDevice
from pondstack.devices.emulated import create_device
from pondstack.devices.fabric import ByteRange, ExtentState
from pondstack.devices.heads import read_heads, set_head
from pondstack.devices.qmp import Monitor, Refused
from pondstack.devices.qmp_fabric import QmpFabric
from pondstack.domain.errors import DeviceFailed, HostUnusable, InUse, PermissionHeld, StaleEpoch
from pondstack.domain.model import Extent
from pondstack.tests.devices import test_contract as contract
from pondstack.tests.devices.test_contract import *  # noqa: F403 (the same tests, with the harness of this module)

from .dcd_device import SLICE, SLICE_MIB, Dcd
from .dcd_rig import DcdRig
from .qemu import Files

pytestmark = pytest.mark.hardware
HOSTS = tuple(f"host{number}" for number in range(16))


@pytest.fixture(scope="session")
def files() -> Files:
    """What QEMU runs from."""
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        pytest.skip("QEMU 11 needs root and the packages of tools/packages.txt: run tools/setup.sh")
    return Files.built()


@pytest.fixture(scope="module")
def shared_rig(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DcdRig]:
    """One QEMU for all tests that leave it running."""
    rig = DcdRig(files, tmp_path_factory.mktemp("dcd"), HOSTS)
    yield rig
    rig.end()


@pytest.fixture
def dcd(shared_rig: DcdRig, tmp_path: Path) -> Iterator[Dcd]:
    """A device with a head for each host, all answering."""
    made = Dcd(shared_rig, tmp_path / "device", contract.SLICES)
    for index in range(contract.SLICES):
        made.write(index, bytes(SLICE))
    yield made
    shared_rig.clear()


@pytest.fixture
def mortal(files: Files, tmp_path: Path) -> Iterator[Dcd]:
    """The same with a QEMU of its own, which the test may stop and kill."""
    rig = DcdRig(files, tmp_path, HOSTS[:3])
    yield Dcd(rig, tmp_path / "device", contract.SLICES)
    rig.end()


@pytest.fixture
def harness(dcd: Dcd) -> contract.Harness:
    """Takes the place of the contract's own fixture."""
    return contract.Harness(
        dcd.device, dcd.open, dcd.write, dcd.read, lambda: shutil.rmtree(dcd.path), keep=dcd.keep, slice_mib=SLICE_MIB
    )


def test_a_grant_reaches_the_host_as_one_event_and_a_revoke_takes_it_away(dcd: Dcd) -> None:
    dcd.fabric.silent = {"host1"}
    dcd.device.grant("host1", [Extent(0, 2), Extent(3, 1)], tag="a", epoch=1)
    events = dcd.rig.hosts["host1"].events()
    assert [(event.more, event.extent) for event in events] == [(True, (0, 2 * SLICE)), (False, (3 * SLICE, SLICE))]
    assert dcd.states("host1", 0, 1, 2, 3) == ["offered", "offered", "absent", "offered"]
    dcd.rig.hosts["host1"].answer()
    assert dcd.rig.hosts["host1"].extents() == [(0, 2 * SLICE), (3 * SLICE, SLICE)]
    assert dcd.states("host1", 0, 1, 2, 3) == ["accepted", "accepted", "absent", "accepted"]
    assert dcd.states("host2", 0, 1, 2, 3) == ["absent"] * 4
    dcd.fabric.silent = set()
    dcd.device.revoke([1, 3], tag="a", epoch=1)
    assert dcd.rig.hosts["host1"].extents() == [(0, SLICE)]
    assert set(dcd.device.permissions()) == {0}


def test_an_offer_that_no_kernel_answered_is_not_taken_back(dcd: Dcd) -> None:
    """The host may accept it at any later time, and QEMU lets nobody withdraw it."""
    dcd.fabric.silent = {"host1"}
    dcd.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    for _ in range(2):
        with pytest.raises(InUse, match=r"not answered the offer of the slices \[0\]"):
            dcd.device.revoke([0], tag="a", epoch=1)
    with pytest.raises(PermissionHeld, match="slice 0"):
        dcd.device.sanitize(0, epoch=1)
    assert set(dcd.device.permissions()) == {0}
    dcd.rig.hosts["host1"].answer(accept=False)
    dcd.device.revoke([0], tag="a", epoch=1)
    assert dcd.device.permissions() == {}
    dcd.device.sanitize(0, epoch=1)


def test_a_host_that_gives_a_part_back_still_has_the_slice(dcd: Dcd) -> None:
    with doubled_slices(dcd) as device:
        device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
        dcd.rig.hosts["host1"].give_back((0, SLICE))
        with pytest.raises(InUse, match=r"slices \[0\]"):
            device.revoke([0], tag="a", epoch=1)
        dcd.rig.hosts["host1"].give_back((SLICE, SLICE))
        device.revoke([0], tag="a", epoch=1)
        assert device.permissions() == {}


@contextmanager
def doubled_slices(dcd: Dcd) -> Iterator[DcdDevice]:
    """The same device with slices of two blocks."""
    path = dcd.path.with_name("doubled")
    create_device(path, 2, slice_mib=2 * SLICE_MIB, serial="doubled")
    yield DcdDevice(path, fabric=lambda _path: dcd.fabric, give_back_seconds=0.0)


def test_the_host_has_time_to_give_back(dcd: Dcd) -> None:
    """What it was asked for once, it may give back while the driver waits."""
    waiting = DcdDevice(dcd.path, fabric=lambda _path: dcd.fabric, give_back_seconds=60.0)
    dcd.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    states, asked = dcd.fabric.states, []

    def later(host: str, ranges: Sequence[ByteRange]) -> list[ExtentState]:
        asked.append(host)
        if len(asked) == 4:
            dcd.rig.hosts["host1"].answer()
        return states(host, ranges)

    with dcd.keep():
        dcd.fabric.states = later  # type: ignore[method-assign]
        waiting.revoke([0], tag="a", epoch=1)
    assert len(asked) == 4
    assert dcd.device.permissions() == {}


@pytest.mark.parametrize("accepted", [True, False])
@pytest.mark.parametrize("done", [0, 1, 2])
def test_a_grant_that_was_cut_off_is_finished_by_its_repetition(dcd: Dcd, done: int, accepted: bool) -> None:
    """Its entry is there; of its two extents the head has none, one or both."""
    dcd.fabric.silent = {"host1"}
    extents = [Extent(0, 1), Extent(2, 1)]
    dcd.device._claim([0, 2], "host1", "a", 1)
    for extent in extents[:done]:
        dcd.fabric.add("host1", [ByteRange(extent.start * SLICE, SLICE)], tag="a")
    if accepted:
        dcd.rig.hosts["host1"].answer()
    dcd.open().grant("host1", extents, tag="a", epoch=2)
    assert ExtentState.ABSENT not in dcd.states("host1", 0, 2)
    dcd.rig.hosts["host1"].answer()
    assert sorted(dcd.rig.hosts["host1"].extents()) == [(0, SLICE), (2 * SLICE, SLICE)]


@pytest.mark.parametrize("given_back", [0, 1, 2])
def test_a_revoke_that_was_cut_off_is_finished_by_its_repetition(dcd: Dcd, given_back: int) -> None:
    dcd.device.grant("host1", [Extent(0, 2)], tag="a", epoch=1)
    for index in range(given_back):
        dcd.fabric.release("host1", [ByteRange(index * SLICE, SLICE)])
    dcd.open().revoke([0, 1], tag="a", epoch=2)
    assert dcd.device.permissions() == {}
    assert dcd.states("host1", 0, 1) == ["absent", "absent"]


def test_what_somebody_else_added_is_neither_granted_nor_zeroed(dcd: Dcd) -> None:
    dcd.fabric.add("host1", [ByteRange(SLICE, SLICE)], tag="by hand")
    dcd.write(1, b"in use")
    for command in (
        lambda: dcd.device.grant("host1", [Extent(0, 2)], tag="a", epoch=1),
        lambda: dcd.device.sanitize(1, epoch=1),
        lambda: dcd.device.fence("host1", [1], epoch=1),
    ):
        with pytest.raises(InUse, match=r"\[1\].* without a permission"):
            command()
    assert dcd.device.permissions() == {}
    assert dcd.read(1).startswith(b"in use")
    assert dcd.states("host1", 0) == ["absent"]


def test_the_device_keeps_out_who_has_not_accepted_a_slice(mortal: Dcd) -> None:
    """By the processor's own loads and stores. What it refuses reads as zeros, and is told nowhere."""
    owner, foreign = mortal.rig.map_memory("host1", "host2")
    qtest, text = mortal.rig.qtest, b"of host1"
    mortal.fabric.silent = {"host1"}

    def refused(address: int) -> bool:
        before = mortal.read(0)
        qtest.put(address, 0x4141414141414141, "q")
        return qtest.read(address, 8) == bytes(8) and mortal.read(0) == before

    mortal.write(0, text)
    assert refused(owner)
    mortal.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    assert refused(owner)  # offered
    mortal.rig.hosts["host1"].answer()
    assert qtest.read(owner, 8) == text
    qtest.put(owner + 8, int.from_bytes(b"written.", "little"), "q")
    assert mortal.read(0)[:16] == text + b"written."
    assert refused(foreign)
    assert refused(owner + SLICE)  # the next slice, which nobody has
    mortal.fabric.silent = set()
    mortal.device.revoke([0], tag="a", epoch=1)
    assert refused(owner)
    mortal.device.sanitize(0, epoch=1)
    mortal.device.grant("host2", [Extent(0, 1)], tag="b", epoch=1)
    assert qtest.read(foreign, 16) == bytes(16)
    qtest.put(foreign, 0x4141414141414141, "q")
    assert mortal.read(0)[:8] == b"A" * 8


def test_a_host_without_a_head_is_refused(dcd: Dcd) -> None:
    with pytest.raises(HostUnusable, match="device head"):
        dcd.device.grant("stranger", [Extent(0, 1)], tag="a", epoch=1)
    assert dcd.device.permissions() == {}


@pytest.mark.parametrize("slice_mib", [1, 512])
def test_slices_that_the_region_does_not_fit_are_refused(dcd: Dcd, tmp_path: Path, slice_mib: int) -> None:
    create_device(tmp_path / "other", 2, slice_mib=slice_mib)
    device = DcdDevice(tmp_path / "other", fabric=lambda _path: dcd.fabric)
    with pytest.raises(HostUnusable, match="multiples of 2 MiB"):
        device.grant("host1", [Extent(1, 1)], tag="a", epoch=1)
    assert device.permissions() == {}


def test_a_head_that_names_no_such_device(dcd: Dcd) -> None:
    set_head(dcd.path, "host1", replace(dcd.rig.head("host1"), device="nothing"))
    device = DcdDevice(dcd.path)
    with pytest.raises(HostUnusable, match="nothing"):
        device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    assert device.permissions() == {}


def test_qemu_never_takes_by_force(dcd: Dcd) -> None:
    """Why `fence` waits: the day QEMU can, this test tells."""
    dcd.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    with Monitor(str(dcd.rig.monitor), 20.0) as monitor, pytest.raises(Refused, match="not supported"):
        monitor.execute(
            "cxl-release-dynamic-capacity",
            path="head1",
            region=0,
            extents=[{"offset": 0, "len": SLICE}],
            **{"host-id": 0, "removal-policy": "prescriptive", "forced-removal": True},
        )
    assert dcd.states("host1", 0) == ["accepted"]


def test_extents_outlive_a_reset_of_the_host(mortal: Dcd) -> None:
    """So that a reboot gives nothing back; see the next test."""
    mortal.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    mortal.fabric.silent = {"host2"}
    mortal.device.grant("host2", [Extent(1, 1)], tag="b", epoch=1)
    with Monitor(str(mortal.rig.monitor), 20.0) as monitor:
        monitor.execute("system_reset")
    assert mortal.states("host1", 0, 1) == ["accepted", "absent"]
    assert mortal.states("host2", 0, 1) == ["absent", "offered"]


def test_a_host_that_lost_its_power_holds_nothing(mortal: Dcd) -> None:
    mortal.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    mortal.fabric.silent = {"host1"}
    mortal.device.grant("host1", [Extent(1, 1)], tag="b", epoch=1)
    mortal.rig.process.kill()
    mortal.rig.process.wait()
    with pytest.raises(HostUnusable, match="off"):
        mortal.device.grant("host1", [Extent(2, 1)], tag="c", epoch=1)
    mortal.device.fence("host1", [0, 1], epoch=1)
    assert mortal.device.permissions() == {}
    mortal.device.sanitize(0, epoch=1)


def test_a_head_on_another_machine_is_not_taken_for_off(mortal: Dcd) -> None:
    mortal.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    mortal.rig.process.kill()
    mortal.rig.process.wait()
    elsewhere = QmpFabric({"host1": replace(mortal.rig.head("host1"), machine="another machine")})
    device = DcdDevice(mortal.path, fabric=lambda _path: elsewhere)
    with pytest.raises(DeviceFailed, match="another machine"):
        device.revoke([0], tag="a", epoch=1)
    assert set(device.permissions()) == {0}


def test_a_host_that_hangs_keeps_what_it_has_and_nothing_else(mortal: Dcd) -> None:
    device = mortal.device
    device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    impatient = DcdDevice(mortal.path, fabric=lambda path: QmpFabric(read_heads(path), answer_seconds=0.2))
    os.kill(mortal.rig.process.pid, signal.SIGSTOP)
    try:
        before = time.monotonic()
        for command in (
            lambda: impatient.revoke([0], tag="a", epoch=1),
            lambda: impatient.fence("host1", [0], epoch=1),
            lambda: impatient.grant("host2", [Extent(1, 1)], tag="b", epoch=1),
        ):
            with pytest.raises(DeviceFailed, match="monitor"):
                command()
        assert time.monotonic() - before < 30
        assert set(impatient.permissions()) == {0, 1}  # nobody knows whether the offer will be read
        impatient.sanitize(2, epoch=1)
    finally:
        os.kill(mortal.rig.process.pid, signal.SIGCONT)
    device.revoke([0], tag="a", epoch=1)
    device.grant("host2", [Extent(1, 1)], tag="b", epoch=1)
    assert mortal.states("host2", 1) != ["absent"]


def test_a_former_leader_that_sleeps_with_an_offer_in_its_hands_is_waited_for(
    dcd: Dcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pondstack.devices.emulated_files.LOCK_SECONDS", 0.05)
    newer, add = dcd.open(), dcd.fabric.add

    def sleeps(host: str, ranges: Sequence[ByteRange], *, tag: str) -> None:
        dcd.fabric.add = add  # type: ignore[method-assign]
        newer.raise_epoch(2)
        for command in (
            lambda: newer.revoke([0], tag="a", epoch=2),
            lambda: newer.grant("host1", [Extent(0, 1)], tag="a", epoch=2),
        ):
            with pytest.raises(InUse, match="another controller"):
                command()
        add(host, ranges, tag=tag)

    dcd.fabric.add = sleeps  # type: ignore[method-assign]
    dcd.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    with pytest.raises(StaleEpoch):
        dcd.device.revoke([0], tag="a", epoch=1)
    newer.revoke([0], tag="a", epoch=2)
    newer.grant("host2", [Extent(0, 1)], tag="b", epoch=2)
    assert dcd.states("host1", 0) == ["absent"]
    assert dcd.states("host2", 0) == ["accepted"]
