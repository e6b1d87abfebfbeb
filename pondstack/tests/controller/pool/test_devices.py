"""Pool devices as the operator lists them."""

from dataclasses import replace

import pytest

from pondstack.controller.pool.devices import DeviceRegistry, DeviceSpec, load_device, parse_spec
from pondstack.devices.emulated import create_device
from pondstack.domain.errors import BadRequest, DeviceFailed, HostUnusable, PermissionHeld
from pondstack.domain.model import Extent
from pondstack.domain.requests import AssignRequest
from pondstack.domain.zeroing import DeviceMemory
from pondstack.tests.controller.conftest import POOL, SERIAL, SLICES, make_intake


def test_specs():
    assert parse_spec("pool0=emulated:/srv/a=b:c") == DeviceSpec("pool0", "emulated", "/srv/a=b:c")


@pytest.mark.parametrize(
    "text", ["", "pool0", "pool0=", "pool0=emulated", "pool0=emulated:", "=emulated:/x", "pool0=:/x"]
)
def test_malformed_specs_show_the_legal_form(text):
    with pytest.raises(BadRequest, match="name=driver:address"):
        parse_spec(text)


def test_drivers_come_by_entry_point(device):
    assert load_device(DeviceSpec("pool0", "emulated", str(device.path))).info() == device.info()
    with pytest.raises(BadRequest, match="no driver 'cxl9'"):
        load_device(DeviceSpec("pool0", "cxl9", "x"))


def test_a_device_that_answers_later_is_registered_later(rack, tmp_path):
    registry = DeviceRegistry(rack.ledger, [DeviceSpec("pool1", "emulated", str(tmp_path / "pool1"))])
    assert registry.register() == ()
    create_device(tmp_path / "pool1", 2, serial="S2")
    (uuid,) = registry.register()
    assert registry.about(uuid).slices_total == 2
    assert rack.reader.pool("pool1").slices["free"] == 2
    assert registry.register() == ()


def test_a_device_that_is_listed_twice_counts_once(rack, device):
    specs = [DeviceSpec(name, "emulated", str(device.path)) for name in ("pool0", "again")]
    registry = DeviceRegistry(rack.ledger, specs)
    assert registry.register() == (POOL,)
    assert registry.about(POOL).name == "pool0"


def test_a_pool_that_is_no_longer_listed_has_failed(rack):
    registry = DeviceRegistry(rack.ledger, [])
    registry.check({POOL: rack.reader.rack().pools[POOL].pool.state})
    assert rack.reader.pool(POOL).state == "failed"
    with pytest.raises(DeviceFailed, match="pool_devices"):
        registry.get(POOL)


@pytest.mark.parametrize(("zeroing", "reached"), [("host", True), ("device", False), ("", False)])
def test_a_host_that_leaves_zeroing_to_a_device_that_cannot_gets_nothing(rack, device, zeroing, reached):
    """Placement and the scheduler do not see it among the pool's hosts, and an assignment refuses it."""
    create_device(device.path, SLICES, serial=SERIAL, memory=DeviceMemory.ELSEWHERE)
    rack.devices = DeviceRegistry(rack.ledger, [DeviceSpec("pool0", "emulated", str(device.path))])
    rack.devices.register()
    intake = make_intake(rack)
    report = replace(rack.agents["h1"].report(), zeroing={POOL: zeroing} if zeroing else {})
    intake.receive(report)
    request = AssignRequest("vm1", "h1", POOL, 1024, 2048)
    if reached:
        assert rack.ledger.slices.assign("op-1", request)["extents"]
        return
    with pytest.raises(HostUnusable, match="does not reach pool"):
        rack.ledger.slices.assign("op-1", request)
    intake.receive(replace(report, sequence=report.sequence + 1, zeroing={POOL: "host"}))
    assert rack.ledger.slices.assign("op-2", request)["extents"]


def test_a_device_whose_memory_is_elsewhere_zeroes_nothing(tmp_path):
    made = create_device(tmp_path / "table", 2, slice_mib=1, serial="S9", memory=DeviceMemory.ELSEWHERE)
    (made.path / "memory").unlink()
    (made.path / "memory").touch()
    made.grant("h1", [Extent(0, 1)], tag="a1", epoch=1)
    with pytest.raises(PermissionHeld):
        made.sanitize(0, epoch=1)
    made.revoke([0], tag="a1", epoch=1)
    made.sanitize(0, epoch=1)
    assert made.info().address["memory"] == "elsewhere"


def test_what_a_devices_memory_is_can_be_told_later(tmp_path):
    first = create_device(tmp_path / "pool", 2, slice_mib=1)
    assert first.info().memory == DeviceMemory.FILE
    serial = first.info().serial
    assert create_device(tmp_path / "pool", 2, slice_mib=1, memory=DeviceMemory.CXL).info().memory == DeviceMemory.CXL
    again = create_device(tmp_path / "pool", 2, slice_mib=1)
    assert (again.info().memory, again.info().serial) == (DeviceMemory.CXL, serial)
