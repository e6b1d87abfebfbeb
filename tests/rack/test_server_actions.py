"""Actions on zNUMA guests that only real libvirt and QEMU show: several at once, suspend, snapshot, failed moves."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pondstack_rack.demo import demo
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone
from pondstack_rack.services.image import IMAGE
from pondstack_rack.wait import wait_until
from tests.rack.beats import GUEST_SECONDS, beat

pytestmark = [pytest.mark.rack, pytest.mark.timeout(900)]

SETTLE_SECONDS = 60.0
FLAVOR = "pond.fixed.small"


@pytest.fixture
def boot(rack: Rack) -> Iterator[Callable[[int], list[Any]]]:
    """Boot so many guests with pool memory by one request."""
    tenant = rack.connection(keystone.TENANT)
    servers: list[Any] = []

    def make(count: int) -> list[Any]:
        flavor = tenant.compute.find_flavor(FLAVOR, ignore_missing=False)
        picture = tenant.image.find_image(IMAGE)
        tenant.compute.create_server(
            name="actions",
            flavor_id=flavor.id,
            image_id=picture.id,
            networks="none",
            min_count=count,
            max_count=count,
        )
        servers.extend(server for server in tenant.compute.servers() if server.name.startswith("actions"))
        for server in servers:
            _becomes(tenant, server.id, "ACTIVE")
        return servers

    yield make
    for server in servers:
        tenant.compute.delete_server(server.id, ignore_missing=True)
    for server in servers:
        tenant.compute.wait_for_delete(server, wait=SETTLE_SECONDS)


def test_two_servers_of_one_request(rack: Rack, boot: Callable[[int], list[Any]]) -> None:
    admin = rack.connection()
    servers = boot(2)
    assert len(servers) == 2
    slices: list[tuple[int, int]] = []
    for server in servers:
        facts = demo.look(rack.layout, admin, server.id)
        assert demo.check(facts) == []
        slices += [(extent["start"], extent["count"]) for extent in facts.ledger["extents"]]
    assert len(set(slices)) == len(slices)


def test_a_guest_is_suspended_and_resumed(rack: Rack, boot: Callable[[int], list[Any]]) -> None:
    """Its pool memory has what it had, in the same slices; suspended, it keeps them."""
    admin = rack.connection()
    (server,) = boot(1)
    beat(admin, server.id, 3)
    before = demo.look(rack.layout, admin, server.id)
    admin.compute.suspend_server(server.id)
    _becomes(admin, server.id, "SUSPENDED")
    suspended = demo.look(rack.layout, admin, server.id)
    assert suspended.ledger["extents"] == before.ledger["extents"]
    admin.compute.resume_server(server.id)
    _becomes(admin, server.id, "ACTIVE")
    first = beat(admin, server.id, 4)
    after = beat(admin, server.id, first["count"] + 3)
    assert after["errors"] == 0, "the guest read something else from its pool memory than it had written"
    facts = demo.look(rack.layout, admin, server.id)
    assert demo.check(facts) == []
    assert facts.ledger["extents"] == before.ledger["extents"]


def test_a_snapshot_of_a_running_guest(rack: Rack, boot: Callable[[int], list[Any]]) -> None:
    admin = rack.connection()
    (server,) = boot(1)
    first = beat(admin, server.id, 3)
    before = demo.look(rack.layout, admin, server.id)
    picture = admin.compute.create_server_image(server.id, "snapshot", wait=True, timeout=GUEST_SECONDS)
    try:
        assert admin.image.get_image(picture).status == "active"
        after = beat(admin, server.id, first["count"] + 3)
        assert after["errors"] == 0
        facts = demo.look(rack.layout, admin, server.id)
        assert demo.check(facts) == []
        assert facts.ledger["extents"] == before.ledger["extents"]
    finally:
        admin.image.delete_image(picture)


def test_a_live_migration_whose_destination_dies(rack: Rack, boot: Callable[[int], list[Any]]) -> None:
    """Nova undoes it: the guest goes on where it was, with its memory, and its server is not left in ERROR."""
    admin = rack.connection()
    (server,) = boot(1)
    first = beat(admin, server.id, 3)
    before = demo.look(rack.layout, admin, server.id)
    admin.compute.live_migrate_server(server.id, host=None, block_migration="auto")
    assert wait_until(lambda: _kill_arrival(server.id), GUEST_SECONDS, 0.05), "no QEMU waited for it anywhere"
    assert wait_until(lambda: admin.compute.get_server(server.id).task_state is None, GUEST_SECONDS, 0.5)
    last = beat(admin, server.id, first["count"])["count"]
    after = beat(admin, server.id, last + 3)
    assert after["errors"] == 0, "the guest read something else from its pool memory than it had written"
    # Looked at now: Nova has it ACTIVE while it undoes the migration, and says only then what became of it.
    found = admin.compute.get_server(server.id)
    assert (found.status, found.hypervisor_hostname) == ("ACTIVE", before.host), found.fault
    facts = demo.look(rack.layout, admin, server.id)
    assert demo.check(facts) == []
    assert facts.ledger["extents"] == before.ledger["extents"]


def _kill_arrival(server: str) -> bool:
    """Kill the process that waits for a guest's migration; returns whether there was one."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if b"-incoming" in words and server.encode() in words:
                os.kill(int(path.parent.name), signal.SIGKILL)
                return True
    return False


def _becomes(connection: Any, server: str, status: str) -> None:
    def there() -> bool:
        found = connection.compute.get_server(server)
        assert status == "ERROR" or found.status != "ERROR", found.fault
        return bool(found.status == status)

    assert wait_until(there, GUEST_SECONDS, 0.5), connection.compute.get_server(server).status
