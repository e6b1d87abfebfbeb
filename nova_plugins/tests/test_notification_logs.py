"""Logs that Nova's own notification objects and oslo.messaging's log driver write are read by the planner."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nova import context as nova_context
from nova import objects, rpc
from nova.conf import CONF
from nova.notifications import base as unversioned
from nova.notifications.objects import base, instance
from nova.objects import fields
from oslo_messaging.notify import _impl_log

from pondstack.planner.traces import nova_notifications
from pondstack.planner.traces.imported import Options

UUID = "6b4c0f5e-2d83-4e55-8f0c-0d6a4f1c9a01"
UNSET = """
reservation_id display_name display_description hostname host node os_type architecture availability_zone image_ref
key_name kernel_id ramdisk_id terminated_at deleted_at updated_at power_state task_state progress instance_type_id
cell_name access_ip_v4 access_ip_v6
"""
BEGUN = datetime(2026, 11, 1, 10, 0, 0, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the log of a service with Nova's notifications."""
    objects.register_all()
    monkeypatch.setattr(rpc, "NOTIFIER", SimpleNamespace(is_enabled=lambda: True))
    CONF.set_override("notification_format", "both", group="notifications")
    monkeypatch.setattr(instance.SharePayload, "from_instance", lambda _instance: [])
    path = tmp_path / "notifications.log"
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s [-] %(message)s"))
    logger = logging.getLogger(_impl_log.LogDriver.LOGGER_BASE)
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "level", logging.INFO)
    yield path
    handler.close()
    CONF.clear_override("notification_format", group="notifications")


def server(memory: int, state: str = "active") -> Any:
    """Return an instance of Nova's."""
    flavor = objects.Flavor(
        flavorid="1",
        name=f"m{memory}",
        memory_mb=memory,
        vcpus=2,
        root_gb=1,
        ephemeral_gb=0,
        swap=0,
        rxtx_factor=1.0,
        vcpu_weight=0,
        disabled=False,
        is_public=True,
        extra_specs={},
        projects=[],
        description=None,
    )
    unset = dict.fromkeys(UNSET.split())
    return objects.Instance(
        nova_context.get_admin_context(),
        **unset,
        uuid=UUID,
        user_id="u",
        project_id="blue",
        flavor=flavor,
        created_at=BEGUN,
        launched_at=BEGUN + timedelta(seconds=10),
        vm_state=state,
        metadata={},
        system_metadata={},
        locked=False,
        auto_disk_config=False,
        info_cache=objects.InstanceInfoCache(network_info=None),
    )


def write(event: str, payload: Any, seconds: float) -> None:
    """Write a notification as the driver does."""
    message = {
        "message_id": "b0a7e0d0-0000-4000-8000-000000000000",
        "publisher_id": "nova-compute:host-1",
        "event_type": event,
        "priority": "INFO",
        "payload": payload,
        "timestamp": str((BEGUN + timedelta(seconds=seconds)).replace(tzinfo=None)),
    }
    _impl_log.LogDriver(None, None, None).notify({}, message, "INFO", -1)


def versioned(action: str, found: Any, seconds: float) -> None:
    """Write the versioned form, with the name that Nova gives it."""
    event = base.EventType(object="instance", action=action, phase=fields.NotificationPhase.END)
    payload = instance.InstanceActionPayload(context=found._context, instance=found, fault=None, bdms=[])
    write(event.to_notification_event_type_field(), payload.obj_to_primitive(), seconds)


def legacy(action: str, found: Any, seconds: float) -> None:
    """Write the unversioned form."""
    write(f"compute.instance.{action}", unversioned.info_from_instance(None, found, None), seconds)


RUNS = [(0, 90, 2.0, 2048, None, None, "blue"), (90, 190, 2.0, 4096, None, None, "blue")]


def test_versioned_ones(log: Path) -> None:
    action = fields.NotificationAction
    versioned(action.CREATE, server(2048), 10)
    versioned(action.LIVE_MIGRATION_POST_DEST, server(2048), 50)
    versioned(action.RESIZE_FINISH, server(4096), 100)
    versioned(action.POWER_OFF, server(4096), 150)
    versioned(action.DELETE, server(4096, "deleted"), 200)
    found = nova_notifications.read(log, Options(""))
    assert found.trace.servers.rows() == RUNS
    assert (found.rows, found.trace.dropped) == (5, ())


def test_unversioned_ones(log: Path) -> None:
    legacy("create.end", server(2048), 10)
    legacy("live_migration.post.dest.end", server(2048), 50)
    legacy("finish_resize.end", server(4096), 100)
    legacy("exists", server(4096), 150)
    legacy("delete.end", server(4096, "deleted"), 200)
    found = nova_notifications.read(log, Options(""))
    assert found.trace.servers.rows() == RUNS
    assert (found.rows, found.trace.dropped) == (5, ())


def test_every_name_of_an_act_is_one_of_novas() -> None:
    known = set(fields.NotificationAction.ALL)
    names = {name.removesuffix(".end") for name in (*nova_notifications.THERE, *nova_notifications.GONE)}
    # Unversioned notifications have other words.
    assert names - known == {
        "finish_resize",
        "resize.confirm",
        "resize.revert",
        "live_migration._post",
        "live_migration.post.dest",
    }
