"""A tenant's zNUMA guest: what it sees, what the books say, how it goes on when it moves, and without its pool."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pondstack_rack.demo import demo
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone
from pondstack_rack.wait import wait_until
from tests.rack.beats import beat
from tests.rack.local_guest import SLOTS, LocalGuest
from tests.rack.streams import stream_of

pytestmark = [pytest.mark.rack, pytest.mark.timeout(900)]

MIGRATION_SECONDS = 300.0
SETTLE_SECONDS = 60.0
OUTSIDE_MIB = 64
"""What QEMU considers at most beside a guest's nodes: memory of its devices, and the firmware's."""


@pytest.fixture(scope="module")
def guest(rack: Rack) -> Iterator[demo.Facts]:
    """The demonstration's guest, seen from all sides when it had booted; the tests use it in their order."""
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
    """It has the same slices, none of whose memory QEMU copied."""
    admin = rack.connection()
    online_before = guest.pool_after["slices"].get("online", 0)
    places, pool_mib = guest.ledger["extents"], guest.ledger["pool_mib"]
    beat(admin, guest.server, count=SLOTS + 2)
    target = next(host for host in rack.layout.libvirt_hosts if host != guest.host)
    admin.compute.live_migrate_server(guest.server, host=target, block_migration="auto")
    assert wait_until(lambda: _settled(admin, guest.server), MIGRATION_SECONDS, 1.0)
    assert admin.compute.get_server(guest.server).hypervisor_hostname == target
    local_mib = admin.compute.get_server(guest.server).flavor.ram - pool_mib
    assert stream_of(rack, admin, guest.server)["total"] <= local_mib + OUTSIDE_MIB
    # Nova writes the migration's own end down last, after the server's.
    assert wait_until(lambda: _migrations(admin, guest.server) == ["completed"], SETTLE_SECONDS, 1.0)

    first = beat(admin, guest.server, count=SLOTS + 3)
    after = beat(admin, guest.server, count=first["count"] + SLOTS)
    assert after["errors"] == 0, "the guest read something else from its pool memory than it had written"

    def right() -> bool:
        facts = demo.look(rack.layout, admin, guest.server)
        online = facts.pool_after["slices"].get("online", 0)
        return demo.check(facts) == [] and online == online_before and facts.ledger["extents"] == places

    assert wait_until(right, SETTLE_SECONDS, 1.0), "the slices did not become the destination's"


def test_the_guest_moves_to_local_memory_and_stays_local(rack: Rack, guest: demo.Facts) -> None:
    """Its split is corrected: moved live to local memory, and local from then on, whatever Nova does with it."""
    local = LocalGuest(rack, guest.server)
    beat(local.admin, local.server, SLOTS + 2)
    pooled = local.cells()
    assert [cell.get("memAccess") for cell in pooled] == [None, "shared"]
    former = local.host
    told = json.loads(local.mitigate())
    assert (told["state"], told["method"], told["trigger"]) == ("done", "migrate", "operator")
    assert local.host != former
    local.goes_on()
    cells = [{**cell} for cell in pooled]
    cells[1].pop("memAccess")
    assert local.cells() == cells, "its nodes are what they were, on local memory"
    assert local.cells(stored=True) == cells
    local.is_local()

    local.admin.compute.suspend_server(local.server)
    local.becomes("SUSPENDED")
    local.admin.compute.resume_server(local.server)
    local.becomes("ACTIVE")
    local.goes_on()

    local.migrate()
    local.goes_on()
    assert local.cells() == cells
    local.is_local()

    local.admin.compute.stop_server(local.server)
    local.becomes("SHUTOFF")
    local.admin.compute.start_server(local.server)
    local.becomes("ACTIVE")
    assert local.cells() == [], "it starts as a guest that never had pool memory"
    local.is_local()


def _migrations(connection: Any, server: str) -> list[str]:
    return [migration.status for migration in connection.compute.migrations(instance_uuid=server)]


def _settled(connection: Any, server: str) -> bool:
    found = connection.compute.get_server(server)
    return found.task_state is None and found.status in ("ACTIVE", "ERROR")
