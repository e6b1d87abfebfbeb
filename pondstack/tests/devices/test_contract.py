"""What every PoolDevice does. A new driver adds one harness factory to HARNESSES and passes unchanged.

tests/hardware/test_dcd.py runs the same tests against QEMU's dynamic-capacity device.
"""

import mmap
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pondstack.devices.base import Heir, Permission, PoolDevice
from pondstack.devices.emulated import EmulatedDevice, create_device
from pondstack.domain.errors import DeviceFailed, InUse, NotFound, PermissionHeld, StaleEpoch
from pondstack.domain.model import Extent
from tests.fixtures.memory_device import MemoryDevice

SLICES, SLICE_MIB = 4, 1


@dataclass
class Harness:
    """A device of four slices, and what a test does behind its back.

    `map`: be a host with a slice mapped; None: the device guards each access. `keep`: be a host that does not give back
    what it is asked for; None: the device does not ask.
    """

    device: PoolDevice
    reopen: Callable[[], PoolDevice]
    write: Callable[[int, bytes], None]
    read: Callable[[int], bytes]
    fail: Callable[[], None]
    map: Callable[[int], AbstractContextManager[object]] | None = None
    keep: Callable[[], AbstractContextManager[object]] | None = None
    slice_mib: int = SLICE_MIB


def emulated(folder: Path) -> Harness:
    """The device that is a folder."""
    path = folder / "device"
    device = create_device(path, SLICES, slice_mib=SLICE_MIB, serial="contract")

    def write(index: int, data: bytes) -> None:
        with open(path / "memory", "rb+") as memory:
            memory.seek(index * SLICE_MIB * 2**20)
            memory.write(data)

    def read(index: int) -> bytes:
        size = SLICE_MIB * 2**20
        return (path / "memory").read_bytes()[index * size : (index + 1) * size]

    @contextmanager
    def mapped(index: int) -> Iterator[object]:
        size = SLICE_MIB * 2**20
        with open(path / "memory", "rb+") as memory, mmap.mmap(memory.fileno(), size, offset=index * size) as found:
            yield found

    return Harness(device, lambda: EmulatedDevice(path), write, read, lambda: shutil.rmtree(path), mapped)


def memory(_folder: Path) -> Harness:
    """The device without files, for simulations."""
    device = MemoryDevice("contract", SLICES, slice_mib=SLICE_MIB)
    return Harness(
        device,
        lambda: device,
        device.contents.__setitem__,
        lambda index: device.contents.get(index, b""),
        lambda: setattr(device, "failed", True),
    )


HARNESSES: list[Callable[[Path], Harness]] = [emulated, memory]


@pytest.fixture(params=HARNESSES, ids=lambda factory: factory.__name__)
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    made: Harness = request.param(tmp_path)
    return made


def test_info_tells_the_shape_and_an_address(harness: Harness) -> None:
    info = harness.device.info()
    assert (info.slices_total, info.slice_mib) == (SLICES, harness.slice_mib)
    assert info.serial
    assert info.address["driver"]
    assert harness.reopen().info() == info


def test_grant_is_seen_by_everybody(harness: Harness) -> None:
    harness.device.grant("host1", [Extent(0, 2), Extent(3, 1)], tag="a", epoch=1)
    assert harness.reopen().permissions() == {i: Permission("host1", "a", 1) for i in (0, 1, 3)}


def test_grant_twice_is_one_grant(harness: Harness) -> None:
    harness.device.grant("host1", [Extent(0, 2)], tag="a", epoch=1)
    harness.device.grant("host1", [Extent(0, 2)], tag="a", epoch=2)
    assert {p.tag for p in harness.device.permissions().values()} == {"a"}
    assert len(harness.device.permissions()) == 2


@pytest.mark.parametrize(("host", "tag"), [("host2", "a"), ("host1", "b"), ("host2", "b")])
def test_grant_is_all_or_nothing(harness: Harness, host: str, tag: str) -> None:
    harness.device.grant("host1", [Extent(1, 1)], tag="a", epoch=1)
    with pytest.raises(PermissionHeld, match="slice 1"):
        harness.device.grant(host, [Extent(0, 2)], tag=tag, epoch=1)
    assert harness.device.permissions() == {1: Permission("host1", "a", 1)}


@pytest.mark.parametrize(("host", "extent"), [("host1", Extent(2, 1)), ("host2", Extent(2, 2))])
def test_a_unique_tag_is_one_grant(harness: Harness, host: str, extent: Extent) -> None:
    harness.device.grant("host1", [Extent(0, 2)], tag="a", epoch=1)
    if not harness.device.unique_tags:
        harness.device.grant(host, [extent], tag="a", epoch=1)
        assert set(harness.device.permissions()) == {0, 1, *extent.indexes}
        return
    with pytest.raises(PermissionHeld, match="slice 0"):
        harness.device.grant(host, [extent], tag="a", epoch=1)
    assert set(harness.device.permissions()) == {0, 1}


def test_what_is_missing_of_a_tag_is_granted_again(harness: Harness) -> None:
    harness.device.grant("host1", [Extent(0, 2)], tag="a", epoch=1)
    harness.device.revoke([1], tag="a", epoch=1)
    harness.device.grant("host1", [Extent(0, 2)], tag="a", epoch=2)
    assert harness.device.permissions() == {i: Permission("host1", "a", 2) for i in (0, 1)}


def test_one_of_many_wins_a_slice(harness: Harness) -> None:
    def claim(number: int) -> bool:
        try:
            harness.reopen().grant(f"host{number}", [Extent(0, SLICES)], tag=f"tag{number}", epoch=1)
        except PermissionHeld:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, range(16))) == 1
    assert len({p.host for p in harness.device.permissions().values()}) == 1


def test_revoke_takes_back_only_what_the_tag_holds(harness: Harness) -> None:
    harness.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    harness.device.grant("host2", [Extent(1, 1)], tag="b", epoch=1)
    for _ in range(2):
        harness.device.revoke([0, 1, 2], tag="a", epoch=1)
    assert harness.device.permissions() == {1: Permission("host2", "b", 1)}


OLD: dict[str, Callable[[PoolDevice], object]] = {
    "grant": lambda device: device.grant("host1", [Extent(1, 1)], tag="b", epoch=4),
    "revoke": lambda device: device.revoke([0], tag="a", epoch=4),
    "sanitize": lambda device: device.sanitize(2, epoch=4),
}


@pytest.mark.parametrize("verb", OLD)
def test_an_older_epoch_is_refused_for_ever(harness: Harness, verb: str) -> None:
    harness.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    harness.device.revoke([], tag="", epoch=5)
    device = harness.reopen()
    with pytest.raises(StaleEpoch, match="epoch 5"):
        OLD[verb](device)
    assert set(device.permissions()) == {0}


@pytest.mark.parametrize("raise_epoch", ["grant", "sanitize"])
def test_every_verb_teaches_the_epoch(harness: Harness, raise_epoch: str) -> None:
    if raise_epoch == "grant":
        harness.device.grant("host1", [Extent(0, 1)], tag="a", epoch=7)
    else:
        harness.device.sanitize(0, epoch=7)
    with pytest.raises(StaleEpoch):
        harness.reopen().grant("host1", [Extent(1, 1)], tag="b", epoch=6)


def test_sanitize_zeroes_one_slice_only(harness: Harness) -> None:
    harness.write(1, b"secret of one")
    harness.write(2, b"kept")
    for _ in range(2):
        harness.device.sanitize(1, epoch=1)
    assert not any(harness.read(1))
    assert harness.read(2).startswith(b"kept")


def test_sanitize_refuses_while_somebody_may_use_the_slice(harness: Harness) -> None:
    harness.device.grant("host1", [Extent(1, 1)], tag="a", epoch=1)
    harness.write(1, b"in use")
    with pytest.raises(PermissionHeld, match="slice 1"):
        harness.device.sanitize(1, epoch=1)
    assert harness.read(1).startswith(b"in use")


@pytest.mark.parametrize("index", [-1, SLICES])
def test_no_such_slice(harness: Harness, index: int) -> None:
    with pytest.raises(NotFound):
        harness.device.sanitize(index, epoch=1)
    with pytest.raises(NotFound):
        harness.device.grant("host1", [Extent(SLICES - 1, 2)], tag="a", epoch=1)
    assert harness.device.permissions() == {}


def test_a_device_that_does_not_answer_says_so(harness: Harness) -> None:
    harness.fail()
    calls: list[Callable[[], object]] = [
        harness.device.info,
        harness.device.permissions,
        lambda: harness.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1),
        lambda: harness.device.revoke([0], tag="a", epoch=1),
        lambda: harness.device.sanitize(0, epoch=1),
    ]
    for call in calls:
        with pytest.raises(DeviceFailed, match=r"\w"):
            call()


def test_fence_ends_all_permissions_of_one_host(harness: Harness) -> None:
    harness.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    harness.device.grant("host1", [Extent(2, 1)], tag="b", epoch=1)
    harness.device.grant("host2", [Extent(1, 1)], tag="c", epoch=1)
    for _ in range(2):
        harness.device.fence("host1", [0, 2], epoch=1)
    assert harness.reopen().permissions() == {1: Permission("host2", "c", 1)}
    harness.device.sanitize(0, epoch=1)


def test_fence_refuses_an_older_epoch_and_lets_the_host_keep_its_slices(harness: Harness) -> None:
    harness.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    harness.device.raise_epoch(5)
    with pytest.raises(StaleEpoch, match="epoch 5"):
        harness.reopen().fence("host1", [0], epoch=4)
    assert set(harness.device.permissions()) == {0}


def test_fence_is_not_confirmed_by_a_device_that_does_not_answer(harness: Harness) -> None:
    harness.device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    harness.fail()
    with pytest.raises(DeviceFailed):
        harness.device.fence("host1", [0], epoch=1)


def test_fence_is_not_confirmed_while_the_host_can_reach_a_slice(harness: Harness) -> None:
    harness.device.grant("host1", [Extent(0, 2)], tag="a", epoch=1)
    if harness.map is None:
        # The device guards each access itself: once the permission is gone there is nothing to wait for.
        harness.device.fence("host1", [0, 1], epoch=1)
        assert harness.device.permissions() == {}
        return
    with harness.map(1):
        with pytest.raises(InUse, match=r"\[1\]"):
            harness.device.fence("host1", [0, 1], epoch=1)
        assert harness.device.permissions() == {}
        harness.device.fence("host1", [0], epoch=1)
    harness.device.fence("host1", [0, 1], epoch=1)


@pytest.mark.parametrize("verb", ["revoke", "fence"])
def test_what_the_host_does_not_give_back_stays_granted(harness: Harness, verb: str) -> None:
    take_back: Callable[[], None] = {
        "revoke": lambda: harness.device.revoke([1], tag="a", epoch=1),
        "fence": lambda: harness.device.fence("host1", [1], epoch=1),
    }[verb]
    harness.device.grant("host1", [Extent(1, 1)], tag="a", epoch=1)
    harness.write(1, b"in use")
    assert harness.device.host_gives_back == (harness.keep is not None)
    if harness.keep is not None:
        with harness.keep():
            with pytest.raises(InUse, match=r"\[1\]"):
                take_back()
            assert harness.reopen().permissions() == {1: Permission("host1", "a", 1)}
            with pytest.raises(PermissionHeld):
                harness.device.sanitize(1, epoch=1)
        assert harness.read(1).startswith(b"in use")
    take_back()
    assert harness.device.permissions() == {}
    harness.device.sanitize(1, epoch=1)


def test_a_device_says_whether_it_hands_over(harness: Harness) -> None:
    """What it does then is test_heirs.py's."""
    harness.device.grant("host1", [Extent(0, 2)], tag="a", epoch=1)
    if harness.device.hands_over:
        harness.device.add_heir("host2", [Extent(0, 2)], tag="b", owner="a", epoch=1)
    else:
        with pytest.raises(PermissionHeld, match="does not hand"):
            harness.device.add_heir("host2", [Extent(0, 2)], tag="b", owner="a", epoch=1)
    heir = Heir("host2", "b") if harness.device.hands_over else None
    assert harness.reopen().permissions() == {i: Permission("host1", "a", 1, heir) for i in (0, 1)}
