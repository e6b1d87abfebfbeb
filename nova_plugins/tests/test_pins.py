"""What pins or encrypts guest memory has no pool memory: refused for a fixed share, all local for an automatic one."""

import pytest
from nova import exception, objects
from nova.virt.libvirt import driver

from pondstack.domain.errors import BadSpec
from pondstack.domain.room import PoolRoom
from pondstack.domain.sizing import Policy, PondSpecs
from pondstack.rpc.wire import SplitView
from pondstack_nova import pins, validators, virt_libvirt
from pondstack_nova.scheduler import request_filter, split_decision, used_splits

FIXED = {"pond__policy": "fixed", "pond__pool_mb": "1024"}

UUID = "00000000-0000-0000-0000-000000000001"


def device(**values) -> objects.InstancePCIRequests:
    return objects.InstancePCIRequests(requests=[objects.InstancePCIRequest(count=1, spec=[], **values)])


def image(**properties) -> objects.ImageMeta:
    return objects.ImageMeta(properties=objects.ImageMetaProps(**properties))


ALIAS = device(alias_name="gpu", requester_id=None)
PORT = device(alias_name=None, requester_id="port")


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("pci_passthrough:alias", "gpu:1", "a PCI device"),
        ("resources:VGPU", "1", "a mediated or PCI device"),
        ("resources2:PGPU", "1", "a mediated or PCI device"),
        ("accel:device_profile", "fpga", "an accelerator"),
    ],
)
def test_of_a_flavor(key: str, value: str, what: str) -> None:
    assert pins.of_flavor({key: value}) == f"{what} ({key}={value})"


@pytest.mark.parametrize(("key", "value"), [("resources:VGPU", "0"), ("resources:VCPU", "2"), ("hw:cpu_sockets", "1")])
def test_what_of_a_flavor_pins_nothing(key: str, value: str) -> None:
    assert pins.of_flavor({key: value}) is None


def test_of_an_image() -> None:
    assert "hw_mem_encryption" in str(pins.of_image(image(hw_mem_encryption=True)))
    assert pins.of_image(image(hw_mem_encryption=False)) is None
    assert "hw_locked_memory" in str(pins.of_image(image(hw_locked_memory=True)))
    assert pins.of_image(image()) is None
    assert pins.of_image(None) is None


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"pci_requests": ALIAS}, "alias gpu"),
        ({"pci_requests": PORT}, "SR-IOV or vDPA port"),
        ({"image": image(hw_mem_encryption=True)}, "hw_mem_encryption"),
    ],
    ids=["alias", "port", "image"],
)
def test_the_request_filter(make_spec, monkeypatch, values, what: str) -> None:
    """Nothing is decided, and no pool memory of Placement asked for."""
    monkeypatch.setattr(split_decision, "decide", lambda *_: pytest.fail("decided"))
    fixed, auto = make_spec(**FIXED), make_spec(pond__policy="auto")
    for spec in (fixed, auto):
        for name, value in values.items():
            setattr(spec, name, value)
    with pytest.raises(exception.RequestFilterFailed, match=what) as refusal:
        request_filter.pond_split(None, fixed)
    assert pins.LEGAL in refusal.value.message
    assert not request_filter.pond_split(None, auto)
    assert request_filter.pool_mib_of(auto) == 0
    used = used_splits.of(auto)
    assert used is not None
    assert (used.split.source, used.split.local_mib) == ("pinned", 4096)
    assert what in used.split.reason


def test_no_devices_pin_nothing(make_spec, use_splits) -> None:
    use_splits(SplitView(1, 1, rooms=(PoolRoom("pool0", 4096, 4096),)))
    spec = make_spec(**FIXED)
    spec.pci_requests = objects.InstancePCIRequests(requests=[])
    assert request_filter.pond_split(None, spec)


@pytest.mark.parametrize("extra", [{"pci_passthrough:alias": "gpu:1"}, {}], ids=["flavor", "image"])
def test_the_api_refuses_a_fixed_share(extra: dict[str, str]) -> None:
    specs = {"pond:policy": "fixed", "pond:pool_mb": "1024", **extra}
    flavor = objects.Flavor(vcpus=1, memory_mb=4096, extra_specs=specs)
    meta = image(hw_mem_encryption=not extra)
    with pytest.raises(exception.InvalidRequest, match="neither pinned nor encrypted"):
        validators._numa_get_constraints(lambda *_: None, flavor, meta)
    flavor.extra_specs = {"pond:policy": "auto", **extra}
    validators._numa_get_constraints(lambda *_: None, flavor, meta)


@pytest.mark.parametrize("vnic_type", ["direct", "vdpa", "virtio-forwarder", "normal"])
@pytest.mark.parametrize("held", [None, object(), "remote"], ids=["local", "pool", "remote"])
def test_a_port_that_pins_memory_is_not_attached(monkeypatch, vnic_type: str, held: object) -> None:
    plugged = []
    monkeypatch.setattr(driver.LibvirtDriver, "attach_interface", lambda *arguments: plugged.append(arguments))
    ours = object.__new__(virt_libvirt.PondLibvirtDriver)
    remote = held == "remote"
    monkeypatch.setattr(ours, "_pond_holds", lambda _instance: held is not None and not remote, raising=False)
    flavor = objects.Flavor(memory_mb=4096, extra_specs={"pond:remote_mb": "1024"} if remote else {})
    instance = objects.Instance(uuid=UUID, flavor=flavor)
    if held is not None and vnic_type != "normal":
        with pytest.raises(exception.InterfaceAttachFailed):
            ours.attach_interface(None, instance, None, {"vnic_type": vnic_type})
        assert plugged == []
    else:
        ours.attach_interface(None, instance, None, {"vnic_type": vnic_type})
        assert len(plugged) == 1


def test_a_port_of_vhost_user_reaches_remote_memory_behind_the_page_tables(monkeypatch) -> None:
    """Its type is the host's matter, so the API cannot see it."""
    monkeypatch.setattr(driver.LibvirtDriver, "attach_interface", lambda *_: "plugged")
    ours = object.__new__(virt_libvirt.PondLibvirtDriver)
    monkeypatch.setattr(ours, "_pond_holds", lambda _instance: False, raising=False)
    vif = {"vnic_type": "normal", "type": "vhostuser"}
    for specs in ({"pond:remote_mb": "1024"}, {}):
        instance = objects.Instance(uuid=UUID, flavor=objects.Flavor(memory_mb=4096, extra_specs=specs))
        if not specs:
            assert ours.attach_interface(None, instance, None, vif) == "plugged"
            continue
        with pytest.raises(exception.InterfaceAttachFailed):
            ours.attach_interface(None, instance, None, vif)


def test_remote_memory_is_refused_beside_any_pin() -> None:
    with pytest.raises(BadSpec, match=r"pond:remote_mb=64 contradicts a device: no device may pin remote memory"):
        pins.check(PondSpecs(remote_mib=64), "a device")
    pins.check(PondSpecs(remote_mib=64), None)


def test_only_a_fixed_share_is_refused() -> None:
    pins.check(PondSpecs(policy=Policy.AUTO), "a device")
    pins.check(None, "a device")
    pins.check(PondSpecs(policy=Policy.FIXED, pool_mib=1024), None)
    with pytest.raises(BadSpec, match="a device"):
        pins.check(PondSpecs(policy=Policy.FIXED, pool_mib=1024), "a device")
