"""Pool devices as the operator lists them."""

import pytest

from pondstack.controller.pool.devices import DeviceRegistry, DeviceSpec, load_device, parse_spec
from pondstack.devices.emulated import create_device
from pondstack.domain.errors import BadRequest, DeviceFailed
from pondstack.tests.controller.conftest import POOL


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
