"""The internal hooks of Nova's libvirt driver, checked by behaviour; apart, because they import libvirt's driver."""

from unittest.mock import Mock

from lxml import etree
from nova import exception, objects
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import driver, guest, migration

from pondstack.domain.model import Extent
from pondstack.domain.swap_disk import SERIAL
from pondstack.rpc.wire import Attachment, Backing
from pondstack_nova import self_check
from pondstack_nova.compute import checks, seclabels, znuma
from pondstack_nova.compute.remote import swap_disk
from pondstack_nova.self_check import Check, expect

Driver = driver.LibvirtDriver


def hard_reboot_is_the_way_back() -> None:
    """Hard reboot, start and resume on host boot all end in _hard_reboot(context, instance, ...)."""
    context, instance = object(), object()
    for name, extra in (("reboot", ([], "HARD")), ("power_on", ([],)), ("resume_state_on_host_boot", ([], None))):
        this = Mock()
        this._host.get_guest.side_effect = exception.InstanceNotFound(instance_id="self-check")
        getattr(Driver, name)(this, context, instance, *extra)
        expect(this._hard_reboot.called, f"{name} does not call _hard_reboot")
        got = this._hard_reboot.call_args.args[:2]
        expect(got == (context, instance), f"{name} calls _hard_reboot with {got}")
    checks.uses(Driver._hard_reboot, "destroy", "_get_guest_xml")


def destroy_and_release() -> None:
    """power_off does not call destroy, which would give a stopped guest's memory back."""
    this = Mock()
    Driver.power_off(this, Mock())
    expect(not this.destroy.called, "power_off calls destroy")
    checks.uses(Driver.migrate_disk_and_power_off, "power_off")


def guest_xml() -> None:
    """Every new XML comes from _get_guest_config's object; its cells, memnodes and devices are written as they are."""
    this = Mock()
    xml = Driver._get_guest_xml(this, Mock(), Mock(uuid="self-check"), [], {}, Mock())
    expect(xml is this._get_guest_config.return_value.to_xml.return_value, "_get_guest_xml does not use it")
    made = vconfig.LibvirtConfigGuest()
    made.virt_type, made.os_type, made.name, made.uuid, made.vcpus = "qemu", "hvm", "self-check", "u", 2
    backings = (Backing("file", 1024), Backing("node", 2048, host_node=3))
    attachment = Attachment("a", "c", "p", "pool", 3072, 1, (Extent(0, 1), Extent(4, 2)), backings)
    znuma.apply(made, attachment, 4096, "/emulator", {0})
    seclabels.run_as_root(made, ("dac",))
    document = etree.fromstring(made.to_xml())
    cells = [(cell.get("cpus"), cell.get("memory")) for cell in document.findall("./cpu/numa/cell")]
    expect(cells == [("0-1", "1048576"), (None, "1048576"), (None, "2097152")], f"the cells are {cells}")
    nodes = [tuple(node.attrib.values()) for node in document.findall("./numatune/memnode")]
    expect(nodes == [("0", "strict", "0"), ("2", "preferred", "3")], f"the memnodes are {nodes}")
    expect(document.findtext("./devices/emulator") == "/emulator", "the emulator is missing")
    expect(document.findtext("./seclabel/label") == seclabels.ROOT, "the security label is missing")
    bound = Mock(numatune=None)
    znuma.bind_local(bound, {0, 1})
    plain = etree.fromstring(bound.numatune.to_xml())
    expect(dict(plain.find("./memory").attrib) == {"mode": "strict", "nodeset": "0-1"}, "it is not bound")


def swap_disk_xml() -> None:
    """A disk of the network is written with its source, to which ours adds the socket."""
    made = etree.fromstring(swap_disk.SwapDisk("/disk.sock").to_xml())
    source = made.find("./source[@protocol='nbd']/host[@transport='unix']")
    expect(made.get("type") == "network" and source is not None, f"the disk is {etree.tostring(made)!r}")
    expect(made.findtext("./serial") == SERIAL, "the disk has no serial")


def every_start_makes_a_guest() -> None:
    """A guest's process starts in _create_guest, paused if wanted, but for a soft reboot that works."""
    checks.uses(Driver._create_guest, "launch")
    checks.uses(Driver._create_guest_with_network, "_create_guest", "resume")
    for start in (Driver.spawn, Driver._hard_reboot, Driver.resume, Driver.rescue, Driver.finish_migration):
        checks.uses(start, "_create_guest_with_network" if start is not Driver.rescue else "_create_guest")
    checks.uses(Driver.unrescue, "_create_guest")
    checks.uses(Driver._soft_reboot, "launch")
    this = Mock(_soft_reboot=Mock(return_value=False))
    Driver.reboot(this, "context", "instance", [], "SOFT")
    expect(this._hard_reboot.called, "a soft reboot that fails does not become a hard one")


def volumes_have_a_cache_mode() -> None:
    """attach_volume and swap_volume take the disk from _get_volume_config, which sets its cache mode."""
    checks.uses(Driver.attach_volume, "_get_volume_config")
    checks.uses(Driver.swap_volume, "_get_volume_config")
    checks.uses(Driver._get_volume_config, "_set_cache_mode")


def numa_info_without_pins() -> None:
    """dst_numa_info without emulator_pins leaves the migrating guest's XML alone."""
    document = etree.fromstring("<domain><numatune><memnode cellid='1' nodeset='2'/></numatune></domain>")
    info = objects.LibvirtLiveMigrateNUMAInfo(cpu_pins={}, cell_pins={"1": {3}})
    before = etree.tostring(document)
    after = etree.tostring(migration._update_numa_xml(document, objects.LibvirtLiveMigrateData(dst_numa_info=info)))
    expect(after == before, f"it made {after!r} of {before!r}")


def compute_nodes_are_found() -> None:
    """ComputeNode.get_by_host_and_nodename(context, host, nodename) finds another host's, with its statistics."""
    checks.has_parameters(objects.ComputeNode.get_by_host_and_nodename, ("host", "nodename"))
    expect("stats" in objects.ComputeNode.fields, "it has no stats")


def migrate_takes_the_xml() -> None:
    """The destination's XML and libvirt's flags go to guest.migrate(destination_xml=..., flags=...)."""
    names = str(Driver._live_migration_operation.__code__.co_consts)
    expect("'destination_xml'" in names and "'flags'" in names, "they are not passed by name")
    checks.uses(Driver._live_migration_operation, "migrate", "get_updated_guest_xml")


def failed_moves_are_undone_first() -> None:
    """Of a migration whose thread has ended, find_job_type(guest, instance) tells whether the guest is still here."""
    checks.uses(Driver._live_migration_monitor, "find_job_type", "done")
    here = migration.find_job_type(Mock(is_active=Mock(return_value=True)), Mock(), logging_ok=False)
    expect(here == migration.libvirt.VIR_DOMAIN_JOB_FAILED, f"of a guest that is here it says {here}")


def what_is_stored() -> None:
    """Resume goes by the domain that libvirt has, a managed save by its image, unrescue by a file beside the disks."""
    checks.uses(Driver.resume, "_get_existing_domain_xml")
    checks.uses(guest.Guest.save_memory_state, "_domain", "managedSave")
    expect("unrescue.xml" in Driver.unrescue.__code__.co_consts, "unrescue reads another file")
    checks.uses(Driver.unrescue, "get_instance_path")
    domain = Mock()
    expect(guest.Guest(domain)._domain is domain, "libvirt's domain is not in _domain")


LIBVIRT_HOOKS: dict[str, tuple[str, ...]] = {
    "_get_guest_config": ("instance",),
    "_hard_reboot": ("context", "instance"),
    "attach_interface": ("context", "instance", "image_meta", "vif"),
    "check_can_live_migrate_source": ("context", "instance"),
    "post_live_migration_at_destination": ("context", "instance"),
    "_live_migration_operation": ("context", "instance", "dest", "block_migration", "migrate_data", "guest"),
    "_get_host_numa_topology": (),
    "resume": ("context", "instance"),
    "suspend": ("context", "instance"),
    "_create_guest": ("context", "xml", "instance", "power_on", "pause", "post_xml_callback"),
    "_soft_reboot": ("instance",),
    "attach_volume": ("context", "connection_info", "instance"),
    "swap_volume": ("context", "old_connection_info", "new_connection_info", "instance"),
    "_get_volume_config": (),
    "unrescue": ("context", "instance"),
}

CHECKS: list[Check] = [
    ("nova.virt.libvirt.driver.LibvirtDriver._hard_reboot", hard_reboot_is_the_way_back),
    ("nova.virt.libvirt.driver.LibvirtDriver.power_off", destroy_and_release),
    ("nova.virt.libvirt.driver.LibvirtDriver._get_guest_xml", guest_xml),
    ("nova.virt.libvirt.config.LibvirtConfigGuestDisk", swap_disk_xml),
    ("nova.virt.libvirt.driver.LibvirtDriver.resume", what_is_stored),
    ("nova.virt.libvirt.driver.LibvirtDriver._create_guest", every_start_makes_a_guest),
    ("nova.virt.libvirt.driver.LibvirtDriver._get_volume_config", volumes_have_a_cache_mode),
    ("nova.virt.libvirt.migration._update_numa_xml", numa_info_without_pins),
    ("nova.virt.libvirt.driver.LibvirtDriver._live_migration_operation", migrate_takes_the_xml),
    ("nova.virt.libvirt.migration.find_job_type", failed_moves_are_undone_first),
    ("nova.objects.ComputeNode.get_by_host_and_nodename", compute_nodes_are_found),
]


def check_libvirt() -> None:
    """Check what the libvirt driver relies on; raises HookChanged."""
    checks.check_driver(Driver)
    self_check.run([*checks.signatures(Driver, LIBVIRT_HOOKS), *CHECKS])
