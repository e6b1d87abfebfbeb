"""Each hook of Nova's computes, changed away: refused, and named."""

import ast
import inspect
from typing import Any
from unittest.mock import patch

import pytest
from lxml import etree
from nova import objects
from nova.compute import manager
from nova.compute import utils as compute_utils
from nova.scheduler.client import report
from nova.virt import fake
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import driver, migration
from nova.virt.libvirt import guest as libvirt_guest

from pondstack_nova import self_check, virt_fake, virt_libvirt
from pondstack_nova.api import hooks as api_hooks
from pondstack_nova.compute import checks, libvirt_checks
from pondstack_nova.scheduler import hooks as scheduler_hooks

Change = tuple[Any, str, Any]
LIBVIRT = "nova.virt.libvirt.driver.LibvirtDriver"
FAKE = fake.FakeDriverWithoutFakeNodes


def nothing(*_args: Any, **_kwargs: Any) -> Any:
    """Do nothing."""


def _pins_all(document: Any, _data: Any) -> Any:
    document.set("changed", "yes")
    return document


COMPUTE: list[tuple[str, Change]] = [
    (
        "nova.scheduler.client.report.SchedulerReportClient.get_allocs_for_consumer",
        (report.SchedulerReportClient, "get_allocs_for_consumer", nothing),
    ),
    (
        "nova.scheduler.client.report.SchedulerReportClient.set_inventory_for_provider",
        (report.SchedulerReportClient, "set_inventory_for_provider", nothing),
    ),
    ("nova.compute.manager.ComputeManager.init_host", (manager.ComputeManager, "init_host", nothing)),
    ("nova.compute.utils.add_instance_fault_from_exc", (compute_utils, "add_instance_fault_from_exc", nothing)),
    ("nova.compute.manager.ComputeVirtAPI.reportclient", (manager.ComputeVirtAPI, "__init__", nothing)),
    (
        "nova.compute.manager.ComputeManager._build_and_run_instance",
        (manager.ComputeManager, "_build_and_run_instance", nothing),
    ),
    (
        "nova.compute.manager.ComputeManager._rebuild_default_impl",
        (manager.ComputeManager, "_rebuild_default_impl", nothing),
    ),
    (
        "nova.compute.manager.ComputeManager._live_migration_cleanup_flags",
        (manager.ComputeManager, "_live_migration_cleanup_flags", lambda *_: (False, False)),
    ),
]
ONLY_LIBVIRT: list[tuple[str, Change]] = [
    (f"{LIBVIRT}._hard_reboot", (driver.LibvirtDriver, "power_on", nothing)),
    (f"{LIBVIRT}.power_off", (driver.LibvirtDriver, "power_off", lambda self, *_: self.destroy())),
    (f"{LIBVIRT}._get_guest_xml", (driver.LibvirtDriver, "_get_guest_xml", nothing)),
    (f"{LIBVIRT}._get_guest_xml", (vconfig.LibvirtConfigGuest, "_format_devices", nothing)),
    (
        "nova.virt.libvirt.config.LibvirtConfigGuestDisk",
        (vconfig.LibvirtConfigGuestDisk, "format_dom", lambda _disk: etree.XML("<disk><driver/><source/></disk>")),
    ),
    (f"{LIBVIRT}.resume", (libvirt_guest.Guest, "save_memory_state", nothing)),
    (f"{LIBVIRT}._create_guest", (driver.LibvirtDriver, "_create_guest_with_network", nothing)),
    (f"{LIBVIRT}._get_volume_config", (driver.LibvirtDriver, "_get_volume_config", nothing)),
    ("nova.virt.libvirt.migration._update_numa_xml", (migration, "_update_numa_xml", _pins_all)),
    ("nova.virt.libvirt.migration.find_job_type", (driver.LibvirtDriver, "_live_migration_monitor", nothing)),
    (
        "nova.virt.libvirt.migration.find_job_type",
        (migration, "find_job_type", lambda guest, instance, logging_ok=True: 3),  # noqa: ARG005
    ),
    (
        "nova.objects.ComputeNode.get_by_host_and_nodename",
        (objects.ComputeNode, "get_by_host_and_nodename", classmethod(lambda _cls, _context, _node: None)),
    ),
    (
        f"{LIBVIRT}._live_migration_operation",
        (
            driver.LibvirtDriver,
            "_live_migration_operation",
            lambda self, context, instance, dest, block_migration, migrate_data, guest: None,  # noqa: ARG005
        ),
    ),
]


def test_this_nova_fits() -> None:
    checks.check_driver(FAKE)
    libvirt_checks.check_libvirt()


@pytest.mark.parametrize(("hook", "change"), COMPUTE)
def test_changed_compute(hook: str, change: Change) -> None:
    with patch.object(*change), pytest.raises(self_check.HookChanged) as refusal:
        checks.check_driver(FAKE)
    assert refusal.value.hook == hook


@pytest.mark.parametrize(("hook", "change"), ONLY_LIBVIRT)
def test_changed_libvirt(hook: str, change: Change) -> None:
    with patch.object(*change), pytest.raises(self_check.HookChanged) as refusal:
        libvirt_checks.check_libvirt()
    assert refusal.value.hook == hook


HOOKS = {**checks.DRIVER_HOOKS, **libvirt_checks.LIBVIRT_HOOKS}


@pytest.mark.parametrize("name", [name for name, parameters in HOOKS.items() if parameters])
def test_changed_signature(name: str) -> None:
    """A method that takes something else in first place is named."""

    def changed(self: Any, something: Any, *_: Any) -> None:
        del self, something

    with patch.object(driver.LibvirtDriver, name, changed), pytest.raises(self_check.HookChanged) as refusal:
        libvirt_checks.check_libvirt()
    assert refusal.value.hook == f"{LIBVIRT}.{name}"


def test_every_hook_has_a_test() -> None:
    assert {hook for hook, _ in checks.COMPUTE_CHECKS} == {hook for hook, _ in COMPUTE}
    assert {hook for hook, _ in libvirt_checks.CHECKS} == {hook for hook, _ in ONLY_LIBVIRT}


def test_no_check_vanishes_under_python_O() -> None:
    """Checks speak through self_check.expect: python -O drops assert statements."""
    for module in (self_check, scheduler_hooks, api_hooks, checks, libvirt_checks):
        nodes = ast.walk(ast.parse(inspect.getsource(module)))
        assert not [node.lineno for node in nodes if isinstance(node, ast.Assert)], module.__name__


def test_every_override_is_checked() -> None:
    """What our classes override of Nova's is in the lists of hooks."""
    ours = {
        name
        for cls in (virt_libvirt.PondLibvirtDriver, *virt_libvirt.PondLibvirtDriver.__mro__[1:4])
        for name, value in vars(cls).items()
        if callable(value) and hasattr(driver.LibvirtDriver, name) and name not in ("__init__", "init_host")
    }
    assert ours <= set(HOOKS)


@pytest.mark.parametrize(
    ("ours", "module", "check"),
    [
        (virt_libvirt.PondLibvirtDriver, libvirt_checks, "check_libvirt"),
        (virt_fake.PondFakeDriver, checks, "check_driver"),
    ],
)
def test_a_compute_refuses_to_start(ours: type, module: Any, check: str) -> None:
    """The check comes before anything of Nova's own."""
    refusal = self_check.HookChanged("some.hook", "it is gone")
    with (
        patch.object(module, check, side_effect=refusal),
        pytest.raises(self_check.HookChanged, match="it is gone"),
    ):
        object.__new__(ours).init_host("h1")


def test_nova_finds_the_drivers_where_it_looks() -> None:
    """compute_driver = pond.PondLibvirtDriver is nova.virt.pond.PondLibvirtDriver."""
    from nova.virt import pond

    assert pond.PondLibvirtDriver is virt_libvirt.PondLibvirtDriver
    assert pond.PondFakeDriver is virt_fake.PondFakeDriver
    with pytest.raises(AttributeError):
        _ = pond.Nonsense
