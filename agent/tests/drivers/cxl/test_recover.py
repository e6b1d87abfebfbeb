"""What a new life of the driver does about allocations whose device is gone: nothing that a guest may use is let go."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.tests.drivers.cxl.kernel import CXL_SERIAL, SLICE_BYTES, Kernel
from pondstack.devices import pool_uuid
from pondstack.domain.errors import DeviceFailed
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant
from pondstack_agent.drivers.cxl import allocations, region
from pondstack_agent.drivers.cxl.allocations import ONLINE, Allocations
from pondstack_agent.drivers.cxl.driver import CxlHostPool
from pondstack_agent.drivers.cxl.sysfs import Sysfs
from pondstack_agent.host import memory_users

SERIAL = "pool-1"
GRANT = Grant("allocation-1", "guest-1", "host1", pool_uuid(SERIAL), "pool0", {}, 1024, (Extent(0, 2),), 1)

Start = Callable[[], CxlHostPool]


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The boot's id, and an allocation that came online in it; no module needs to be loaded, and no guest runs."""
    path = tmp_path / "boot_id"
    path.write_text("first\n")
    monkeypatch.setattr(allocations, "BOOT_ID", path)
    monkeypatch.setattr(region, "load", lambda _modules: None)
    monkeypatch.setattr(memory_users, "guests", lambda: {})
    before = Allocations(tmp_path, lambda _name: None)
    before.begin(GRANT)
    before.put_state(GRANT.allocation_uuid, ONLINE)
    return path


@pytest.fixture
def start(tmp_path: Path, boot: Path) -> Start:  # noqa: ARG001 - what is on disk comes before the driver
    """Start the agent's driver on a host whose kernel shows no CXL device at all."""
    (tmp_path / "sys").mkdir()
    return lambda: CxlHostPool(host="host1", state_dir=tmp_path, pools={1: SERIAL}, sysfs=Sysfs(tmp_path / "sys"))


def test_a_running_guest_keeps_its_allocation(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_users, "guests", lambda: {GRANT.consumer_uuid: 10})
    driver = start()
    [attached] = driver.attached()
    assert (attached.allocation_uuid, attached.in_use) == (GRANT.allocation_uuid, True)
    assert driver.stuck() == {}


def test_memory_of_this_boot_stays_on_record(start: Start) -> None:
    driver = start()
    assert "reboot" in driver.stuck()[GRANT.allocation_uuid]
    with pytest.raises(DeviceFailed, match="reboot"):
        driver.detach(GRANT.allocation_uuid)
    assert len(driver.attached()) == 1


def test_after_a_reboot_what_does_not_come_back_is_dropped(start: Start, boot: Path) -> None:
    start()
    boot.write_text("second\n")
    driver = start()
    assert driver.detach(GRANT.allocation_uuid)
    assert driver.attached() == ()


def test_a_reboot_that_loses_the_device_drops_the_allocation(start: Start, boot: Path) -> None:
    boot.write_text("second\n")
    assert start().attached() == ()


def test_what_comes_online_again_belongs_to_the_new_boot(tmp_path: Path, boot: Path) -> None:
    boot.write_text("second\n")
    now = Allocations(tmp_path, lambda _name: None)
    former = now.get(GRANT.allocation_uuid)
    assert former is not None
    assert not now.of_this_boot(former)
    now.begin(replace(GRANT, epoch=2))
    record = now.get(GRANT.allocation_uuid)
    assert record is not None
    assert now.of_this_boot(record)
    assert now.state(GRANT.allocation_uuid) == ONLINE


RECOVERY_STEPS = 19
"""Of two allocations with three slices; the test without a kill holds it."""


class Killed(BaseException):
    """The agent ended here."""


@pytest.mark.parametrize("kill_at", [None, *range(RECOVERY_STEPS)])
def test_after_a_reboot_all_guests_of_a_node_get_their_memory_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int | None
) -> None:
    """The node grows allocation by allocation: those that are still to come hold nothing of it."""
    kernel, steps = Kernel(tmp_path / "host1"), 0

    def agent(kill_at: int | None = None) -> CxlHostPool:
        nonlocal steps
        steps = 0

        def step(name: str) -> None:
            nonlocal steps
            if steps == kill_at:
                raise Killed(name)
            steps += 1

        return CxlHostPool(
            host="host1", state_dir=tmp_path / "state", pools={CXL_SERIAL: SERIAL}, sysfs=kernel, step=step
        )

    kernel.install(monkeypatch)
    driver = agent()
    for number, extent in enumerate((Extent(0, 1), Extent(1, 2))):
        mine = replace(GRANT, allocation_uuid=f"a{number}", consumer_uuid=f"guest-{number}")
        driver.attach(replace(mine, slice_mib=SLICE_BYTES >> 20, extents=(extent,)))
    kernel.reboot()
    if kill_at is not None:
        with pytest.raises(Killed):
            agent(kill_at)
    driver = agent()
    assert kill_at is not None or steps == RECOVERY_STEPS
    assert {item.allocation_uuid for item in driver.attached()} == {"a0", "a1"}
    assert [kernel.is_memory(index) for index in range(3)] == [True] * 3
