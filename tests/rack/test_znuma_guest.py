"""A tenant's zNUMA guest: what it sees, what the books say, and that it goes on over a live migration."""

from collections.abc import Iterator
from typing import Any

import pytest

from pondstack_rack.demo import demo
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone
from pondstack_rack.wait import wait_until
from tests.rack.beats import beat

pytestmark = [pytest.mark.rack, pytest.mark.timeout(900)]

MIGRATION_SECONDS = 300.0
SETTLE_SECONDS = 60.0
SLOTS = 16
"""Parts of the guest's buffer: after that many beats each was written before and is checked after the migration."""


@pytest.fixture
def guest(rack: Rack) -> Iterator[demo.Facts]:
    """The demonstration's guest, seen from all sides."""
    tenant = rack.connection(keystone.TENANT)
    facts = demo.run(rack.layout, rack.connection(), tenant, print)
    yield facts
    tenant.compute.delete_server(facts.server)
    tenant.compute.wait_for_delete(tenant.compute.get_server(facts.server), wait=SETTLE_SECONDS)


def test_the_guest_sees_a_node_without_cpus_and_all_books_agree(guest: demo.Facts) -> None:
    assert demo.check(guest) == []
    local, pool = guest.nodes
    assert (local["cpulist"], pool["cpulist"]) == ("0", "")
    assert local["distance"] == [10, pool["distance"][0]]
    assert pool["distance"][0] > 10
    assert guest.beat["pool_node"] == 1
    assert guest.beat["pool_buffer_kib"] > 0
    assert guest.host in ("host1", "host2")
    assert guest.split["source"] == "fixed"


def test_the_guest_goes_on_over_a_live_migration(rack: Rack, guest: demo.Facts) -> None:
    admin = rack.connection()
    online_before = guest.pool_after["slices"].get("online", 0)
    beat(admin, guest.server, count=SLOTS + 2)
    target = next(host for host in rack.layout.libvirt_hosts if host != guest.host)
    admin.compute.live_migrate_server(guest.server, host=target, block_migration="auto")
    assert wait_until(lambda: _settled(admin, guest.server), MIGRATION_SECONDS, 1.0)
    assert admin.compute.get_server(guest.server).hypervisor_hostname == target
    # Nova writes the migration's own end down last, after the server's.
    assert wait_until(lambda: _migrations(admin, guest.server) == ["completed"], SETTLE_SECONDS, 1.0)

    first = beat(admin, guest.server, count=SLOTS + 3)
    after = beat(admin, guest.server, count=first["count"] + SLOTS)
    assert after["errors"] == 0, "the guest read something else from its pool memory than it had written"

    def right() -> bool:
        facts = demo.look(rack.layout, admin, guest.server)
        return demo.check(facts) == [] and facts.pool_after["slices"].get("online", 0) == online_before

    assert wait_until(right, SETTLE_SECONDS, 1.0), "the source's slices did not come back"


def _migrations(connection: Any, server: str) -> list[str]:
    return [migration.status for migration in connection.compute.migrations(instance_uuid=server)]


def _settled(connection: Any, server: str) -> bool:
    found = connection.compute.get_server(server)
    return found.task_state is None and found.status in ("ACTIVE", "ERROR")
