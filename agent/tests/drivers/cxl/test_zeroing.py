"""Zeroing by the host ([cxl] sanitize = host) survives every death: of the agent at each step, of the host too."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.tests.drivers.cxl.kernel import CXL_SERIAL, SLICE_BYTES, Kernel
from pondstack.devices import pool_uuid
from pondstack.devices.emulated import create_device
from pondstack.domain.errors import DeviceFailed
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant
from pondstack_agent.drivers.base import SliceNotZero
from pondstack_agent.drivers.cxl.driver import CxlHostPool
from pondstack_agent.drivers.cxl.permissions import Permissions
from pondstack_agent.drivers.cxl.returns import Settings

SERIAL, TAG = "pool-1", "allocation-1"
GRANT = Grant(TAG, "guest-1", "host1", pool_uuid(SERIAL), "pool0", {}, SLICE_BYTES >> 20, (Extent(1, 2),), 1)
SECRET = b"what a tenant left"
ATTACH_STEPS, DETACH_STEPS = 18, 19
"""Of two slices; `test_the_steps_are_counted` holds them."""


class Killed(BaseException):
    """The process ended here."""


class Host:
    """One host: its kernel, its agent's state folder, and the driver of the agent that runs now."""

    def __init__(self, folder: Path, name: str, content: bytearray | None = None) -> None:
        self.kernel = Kernel(folder / name, content)
        self._folder, self._name = folder, name
        self.steps: list[str] = []
        self.tables: list[str] = []

    def agent(self, *, kill_at: int | None = None, sanitize: str = "host") -> CxlHostPool:
        """Start the agent, to be killed at a step; counted from here."""
        self.steps = []

        def step(name: str) -> None:
            if len(self.steps) == kill_at:
                raise Killed(name)
            self.steps.append(name)

        return CxlHostPool(
            host=self._name,
            state_dir=self._folder / self._name / "state",
            pools={CXL_SERIAL: SERIAL},
            permission_tables=self.tables,
            settings=Settings(zero_on_host=sanitize == "host"),
            sysfs=self.kernel,
            step=step,
        )


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """The host that has the slices first."""
    host = Host(tmp_path, "host1")
    host.kernel.install(monkeypatch)
    return host


@pytest.fixture
def next_owner(tmp_path: Path, first: Host, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Host]:
    """Attach the slices of the first host to another one, over the same device."""

    def attach(sanitize: str = "host") -> Host:
        other = Host(tmp_path, "host2", first.kernel.content)
        with monkeypatch.context() as patch:
            other.kernel.install(patch)
            grant = Grant("allocation-2", "guest-2", "host2", *_rest(GRANT))
            other.agent(sanitize=sanitize).attach(grant)
        return other

    return attach


def _rest(grant: Grant) -> tuple[object, ...]:
    return grant.pool_uuid, grant.pool_name, grant.device, grant.slice_mib, grant.extents, grant.epoch


def _content(host: Host) -> bytes:
    return host.kernel.slice(1) + host.kernel.slice(2)


def _online_and_used(host: Host) -> CxlHostPool:
    driver = host.agent()
    driver.attach(GRANT)
    for index in (1, 2):
        host.kernel.use(index, SECRET)
    return driver


def test_the_steps_are_counted(first: Host) -> None:
    _online_and_used(first)
    assert len(first.steps) == ATTACH_STEPS
    assert first.agent().detach(TAG)
    assert len(first.steps) == DETACH_STEPS
    zeroing = {"devdax", "zero", "write back", "verify"}
    assert {"offline", "unbind", *zeroing, "shrink", "delete", "clean", "forget"} == set(first.steps)


@pytest.mark.parametrize("reboot", [False, True])
@pytest.mark.parametrize("at", range(DETACH_STEPS))
def test_a_detach_that_was_killed_anywhere_leaves_zeros(first: Host, at: int, reboot: bool) -> None:
    _online_and_used(first)
    with pytest.raises(Killed):
        first.agent(kill_at=at).detach(TAG)
    if reboot:
        first.kernel.reboot()
    driver = first.agent()
    driver.detach(TAG)
    assert driver.attached() == ()
    assert not any(_content(first))


@pytest.mark.parametrize("reboot", [False, True])
@pytest.mark.parametrize("at", range(ATTACH_STEPS))
def test_an_attach_that_was_killed_anywhere_leaves_zeros(first: Host, at: int, reboot: bool) -> None:
    with pytest.raises(Killed):
        first.agent(kill_at=at).attach(GRANT)
    for index in (1, 2):  # what is online holds pages of somebody at once
        if first.kernel.is_memory(index):
            first.kernel.use(index, SECRET)
    if reboot:
        first.kernel.reboot()
    driver = first.agent()
    driver.detach(TAG)
    assert driver.attached() == ()
    assert not any(_content(first))


def test_a_repeated_kill_at_each_step_of_zeroing_ends_with_zeros(first: Host) -> None:
    _online_and_used(first)
    for at in (*range(DETACH_STEPS), *range(DETACH_STEPS)):
        try:
            first.agent(kill_at=at).detach(TAG)
        except Killed:
            continue
    assert first.agent().attached() == ()
    assert not any(_content(first))


def test_what_a_reboot_drops_is_zeroed_first(first: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    _online_and_used(first)
    first.kernel.reboot()

    def refuse(_grant: Grant) -> None:
        raise DeviceFailed("the device does not answer yet")

    monkeypatch.setattr(Permissions, "check", lambda _self, grant: refuse(grant))
    assert first.agent().attached() == ()
    assert not any(_content(first))


def test_content_that_cannot_be_reached_any_more_stays_on_record(first: Host) -> None:
    _online_and_used(first)
    first.kernel.reboot()
    first.kernel.there = False
    driver = first.agent()
    with pytest.raises(DeviceFailed, match="not zeroed"):
        driver.detach(TAG)
    assert TAG in driver.stuck()
    first.kernel.there = True
    assert driver.detach(TAG)
    assert not any(_content(first))


def test_memory_that_does_not_become_zero_is_not_given_back(first: Host) -> None:
    driver = _online_and_used(first)
    first.kernel.fails_to_zero = True
    with pytest.raises(DeviceFailed, match="not zero after zeroing"):
        driver.detach(TAG)
    assert TAG in driver.stuck()


def test_slices_that_are_not_on_record_are_zeroed_too(first: Host, tmp_path: Path) -> None:
    _online_and_used(first)
    for record in (tmp_path / "host1" / "state").rglob("*.json"):
        record.unlink()
    driver = first.agent()
    driver.attach(GRANT)
    assert not any(_content(first))


def test_a_record_of_a_former_release_counts_as_dirty(first: Host, tmp_path: Path) -> None:
    _online_and_used(first)
    for record in (tmp_path / "host1" / "state" / "cxl-dirty").glob("*.json"):
        record.unlink()
    with pytest.raises(Killed):
        first.agent(kill_at=3).detach(TAG)
    assert first.agent().detach(TAG)
    assert not any(_content(first))


def test_the_next_owner_of_a_fenced_host_finds_zeros(first: Host, next_owner: Callable[..., Host]) -> None:
    """Nobody can ask the dead host: the next one zeroes what it finds, before its guest can touch it."""
    _online_and_used(first)
    other = next_owner()
    assert not any(_content(first))
    assert other.kernel.zeroed == [1, 2]


def test_a_fenced_host_that_comes_back_writes_over_nobody(
    first: Host, next_owner: Callable[..., Host], tmp_path: Path
) -> None:
    table = create_device(tmp_path / "table", 4, slice_mib=1, serial=SERIAL)
    table.grant("host1", GRANT.extents, tag=TAG, epoch=1)
    first.tables = [str(table.path)]
    _online_and_used(first)
    first.kernel.reboot()
    table.revoke([1, 2], tag=TAG, epoch=1)
    table.grant("host2", GRANT.extents, tag="allocation-2", epoch=1)
    other = next_owner()
    other.kernel.use(1, b"the next tenant's")
    assert first.agent().attached() == ()
    assert b"the next tenant's" in other.kernel.slice(1)


def test_a_slice_that_nobody_zeroes_is_refused_by_its_index(first: Host, next_owner: Callable[..., Host]) -> None:
    _online_and_used(first)
    with pytest.raises(SliceNotZero) as refused:
        next_owner("device")
    assert refused.value.indexes == (1,)
    assert SECRET in first.kernel.slice(1)


@pytest.mark.parametrize("at", [0, 1, 7, 4095, 4096, SLICE_BYTES // 2 + 3, SLICE_BYTES - 1])
def test_one_byte_anywhere_is_found(first: Host, at: int) -> None:
    first.kernel.content[SLICE_BYTES + at] = 1
    with pytest.raises(SliceNotZero, match=rf"slice 1 .* \(offset {at}\)"):
        first.agent(sanitize="device").attach(GRANT)


def test_memory_that_its_last_host_zeroed_is_not_zeroed_again(first: Host, next_owner: Callable[..., Host]) -> None:
    assert _online_and_used(first).detach(TAG)
    assert first.kernel.zeroed == [1, 2]
    assert next_owner().kernel.zeroed == []


@pytest.mark.parametrize("reboot", [False, True])
@pytest.mark.parametrize("at", range(DETACH_STEPS + 1))
@pytest.mark.parametrize("sanitize", ["device", "host"])
def test_nothing_of_a_slice_that_was_given_back_is_written_later(
    first: Host, sanitize: str, at: int, reboot: bool
) -> None:
    """Caches of hosts are not coherent: a line that is written back then goes over the next owner's bytes."""
    _online_and_used(first)
    with contextlib.suppress(Killed):
        first.agent(kill_at=at, sanitize=sanitize).detach(TAG)
    if reboot:
        first.kernel.reboot()
    driver = first.agent(sanitize=sanitize)
    driver.detach(TAG)
    assert driver.attached() == ()
    first.kernel.content[:] = bytes(len(first.kernel.content))  # the device zeroes, the next owner writes
    first.kernel.evict()
    assert not any(_content(first))
