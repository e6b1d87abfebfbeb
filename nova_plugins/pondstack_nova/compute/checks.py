"""The internal hooks of nova-compute that the virt drivers rely on, each checked by behaviour on throw-away objects."""

import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from nova import exception, objects
from nova.compute import manager, resource_tracker, task_states
from nova.compute import utils as compute_utils
from nova.scheduler.client import report

from pondstack_nova import self_check
from pondstack_nova.self_check import Check, expect

DRIVER_HOOKS: dict[str, tuple[str, ...]] = {
    "spawn": ("context", "instance", "image_meta", "injected_files", "admin_password", "allocations"),
    "finish_migration": (
        "context",
        "migration",
        "instance",
        "disk_info",
        "network_info",
        "image_meta",
        "resize_instance",
        "allocations",
    ),
    "finish_revert_migration": ("context", "instance", "network_info", "migration"),
    "migrate_disk_and_power_off": ("context", "instance"),
    "rebuild": ("context", "instance"),
    "destroy": ("context", "instance"),
    "check_source_migrate_data_at_dest": ("ctxt", "instance", "migrate_data", "migration", "limits", "allocs"),
    "pre_live_migration": ("context", "instance"),
    "post_live_migration": ("context", "instance"),
    "rollback_live_migration_at_destination": ("context", "instance"),
    "rollback_live_migration_at_source": ("context", "instance"),
    "get_nodenames_by_uuid": (),
    "update_provider_tree": ("provider_tree", "nodename", "allocations"),
    "get_available_resource": ("nodename",),
    "init_host": ("host",),
    "resume_state_on_host_boot": ("context", "instance"),
}


def check_driver(driver: type) -> None:
    """Check what any of our drivers relies on, for Nova's class `driver`; raises HookChanged."""
    self_check.run([*signatures(driver, DRIVER_HOOKS), *COMPUTE_CHECKS])


def has_parameters(function: Callable[..., Any], expected: tuple[str, ...]) -> None:
    """Fail unless a method's first parameters after self are `expected`: Nova passes them by position."""
    names = tuple(inspect.signature(function).parameters)[1 : len(expected) + 1]
    expect(names == expected, f"its first parameters are {names}, not {expected}")


def uses(function: Callable[..., Any], *names: str) -> None:
    """Fail unless a function's code refers to all `names`: for what only runs inside a whole nova-compute."""
    code = inspect.unwrap(function).__code__
    missing = [name for name in names if name not in code.co_names]
    expect(not missing, f"it does not use {', '.join(missing)}")


def signatures(driver: type, hooks: dict[str, tuple[str, ...]]) -> list[Check]:
    return [
        (f"{driver.__module__}.{driver.__qualname__}.{name}", functools.partial(_has_hook, driver, name, parameters))
        for name, parameters in hooks.items()
    ]


def _has_hook(driver: type, name: str, parameters: tuple[str, ...]) -> None:
    expect(hasattr(driver, name), "it is gone")
    has_parameters(getattr(driver, name), parameters)


def allocations_of_a_consumer() -> None:
    """get_allocs_for_consumer(context, uuid) answers {"allocations": {provider: {"resources": ...}}} or raises."""
    body = {"allocations": {"rp": {"resources": {"MEMORY_MB": 1}}}}
    client = Mock(get=Mock(return_value=Mock(json=Mock(return_value=body), __bool__=lambda _: True)))
    got = inspect.unwrap(report.SchedulerReportClient.get_allocs_for_consumer)(client, Mock(), "uuid")
    expect(got == body, f"it answered {got}")


def reports_classes_of_ours() -> None:
    """The whole inventory of a provider is written at once, and resource classes that are new are made."""
    uses(report.SchedulerReportClient.set_inventory_for_provider, "_ensure_resource_classes")
    uses(resource_tracker.ResourceTracker._update_to_placement, "update_provider_tree")


def virtapi_has_a_report_client() -> None:
    """virtapi.reportclient is the compute manager's."""
    compute = SimpleNamespace(reportclient=object())
    expect(manager.ComputeVirtAPI(compute).reportclient is compute.reportclient, "it gave something else")


def reschedules_when_resources_are_missing() -> None:
    """A ComputeResourcesUnavailable from spawn becomes a RescheduledException."""
    uses(manager.ComputeManager._build_and_run_instance, "ComputeResourcesUnavailable", "RescheduledException", "spawn")
    expect(issubclass(exception.ComputeResourcesUnavailable, exception.NovaException), "it is no NovaException")


def rebuild_announces_itself() -> None:
    """driver.rebuild is called before a rebuild's destroy and spawn, which it leaves to Nova by NotImplementedError."""
    uses(manager.ComputeManager._do_rebuild_instance, "rebuild", "NotImplementedError", "_rebuild_default_impl")
    uses(manager.ComputeManager._rebuild_default_impl, "destroy", "spawn")
    expect(task_states.REBUILDING == "rebuilding", f"the task is called {task_states.REBUILDING}")


def cleans_up_a_failed_move() -> None:
    """migrate_data.dst_numa_info makes Nova clean up at the destination even on shared storage."""
    data = objects.LibvirtLiveMigrateData(
        is_shared_instance_path=True,
        is_shared_block_storage=True,
        dst_numa_info=objects.LibvirtLiveMigrateNUMAInfo(cpu_pins={}, cell_pins={"1": {2}}),
    )
    flags = manager.ComputeManager._live_migration_cleanup_flags(Mock(), data)
    expect(flags == (True, False), f"it answered {flags}")


def starts_guests_after_the_driver() -> None:
    """init_host initialises the driver before it starts the guests of the host again."""
    names = inspect.unwrap(manager.ComputeManager.init_host).__code__.co_names
    found = [name for name in names if name in ("init_host", "_init_instance")]
    expect(found == ["init_host", "_init_instance"], f"it uses {found}")


def faults_are_added() -> None:
    """add_instance_fault_from_exc(context, instance, fault, exc_info) shows the tenant why a server failed."""
    parameters = tuple(inspect.signature(compute_utils.add_instance_fault_from_exc).parameters)[:4]
    expect(parameters == ("context", "instance", "fault", "exc_info"), f"its first parameters are {parameters}")


COMPUTE_CHECKS: list[Check] = [
    ("nova.compute.manager.ComputeManager.init_host", starts_guests_after_the_driver),
    ("nova.compute.utils.add_instance_fault_from_exc", faults_are_added),
    ("nova.scheduler.client.report.SchedulerReportClient.get_allocs_for_consumer", allocations_of_a_consumer),
    ("nova.scheduler.client.report.SchedulerReportClient.set_inventory_for_provider", reports_classes_of_ours),
    ("nova.compute.manager.ComputeVirtAPI.reportclient", virtapi_has_a_report_client),
    ("nova.compute.manager.ComputeManager._build_and_run_instance", reschedules_when_resources_are_missing),
    ("nova.compute.manager.ComputeManager._rebuild_default_impl", rebuild_announces_itself),
    ("nova.compute.manager.ComputeManager._live_migration_cleanup_flags", cleans_up_a_failed_move),
]
