"""Boots a zNUMA guest as a tenant would, and collects what every part of the cloud says about it."""

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import sqlalchemy as sa
from keystoneauth1.adapter import Adapter
from sqlalchemy.orm import Session

from pondstack.db.models import SplitRow
from pondstack.devices import pool_uuid
from pondstack.domain import sizing
from pondstack.domain.units import RESOURCE_CLASS
from pondstack_rack.layout import Layout, RackError
from pondstack_rack.services import database, image, keystone, pondstack_services
from pondstack_rack.wait import wait_until

NAME = "demo-znuma"
FLAVOR = "pond.fixed.small"
BOOT_SECONDS = 180.0
CONSOLE_SECONDS = 180.0


@dataclass
class Facts:
    """What the demo shows. All amounts are MiB unless the name says otherwise."""

    server: str = ""
    flavor: str = ""
    specs: dict[str, str] = field(default_factory=dict)
    host: str = ""
    boot_seconds: float | None = None
    split: dict[str, Any] = field(default_factory=dict)
    hosts: list[dict[str, Any]] = field(default_factory=list)
    pool_before: dict[str, Any] = field(default_factory=dict)
    pool_after: dict[str, Any] = field(default_factory=dict)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    beat: dict[str, Any] = field(default_factory=dict)
    ledger: dict[str, Any] = field(default_factory=dict)
    placement: dict[str, dict[str, int]] = field(default_factory=dict)


def run(layout: Layout, connection: Any, tenant: Any, say: Any) -> Facts:
    """Boot the guest, or look at the one of an earlier run; RackError when it does not come up or facts disagree."""
    facts = Facts(flavor=FLAVOR)
    memory = _service(layout, "memory")
    facts.pool_before = _pool(memory)
    facts.hosts = _hosts(connection, memory)
    server = next(iter(tenant.compute.servers(name=f"^{NAME}$")), None)
    if server is not None and server.status == "ERROR":
        say(f"{NAME} of an earlier run is in ERROR: deleting it")
        tenant.compute.delete_server(server)
        tenant.compute.wait_for_delete(server)
        server = None
    if server is None:
        say(f"booting {NAME}, flavor {FLAVOR}, as the tenant '{keystone.TENANT}' through Nova's API")
        begun = time.monotonic()
        server = _boot(tenant)
        server = _wait_active(layout, tenant, server)
        facts.boot_seconds = time.monotonic() - begun
        say(f"ACTIVE after {facts.boot_seconds:.1f} s; waiting for the guest to tell its NUMA nodes")
    else:
        say(f"{NAME} is there from an earlier run")
    if server.status != "ACTIVE":
        raise RackError(f"{NAME} is {server.status}: openstack server delete {server.id}, then make rack again")
    _wait_console(tenant, server, facts)
    _collect(layout, connection, memory, server.id, facts)
    return facts


def look(layout: Layout, connection: Any, server: str) -> Facts:
    """Collect what Nova, ledger and Placement say of a server now, without its console."""
    facts = Facts()
    _collect(layout, connection, _service(layout, "memory"), server, facts)
    return facts


def _boot(tenant: Any) -> Any:
    flavor = tenant.compute.find_flavor(FLAVOR, ignore_missing=False)
    guest = tenant.image.find_image(image.IMAGE, ignore_missing=False)
    return tenant.compute.create_server(name=NAME, flavor_id=flavor.id, image_id=guest.id, networks="none")


def _wait_active(layout: Layout, tenant: Any, server: Any) -> Any:
    def settled() -> bool:
        nonlocal server
        server = tenant.compute.get_server(server)
        return server.status in ("ACTIVE", "ERROR")

    if not wait_until(settled, BOOT_SECONDS, poll_seconds=0.5) or server.status == "ERROR":
        fault = (server.fault or {}).get("message", "no fault given")
        raise RackError(
            f"the guest is {server.status}: {fault}\n  logs: {layout.log}/nova-scheduler.log, nova-conductor.log, "
            "nova-compute-*.log, pondstack-controller*.log, pondstack-agent-*.log"
        )
    return server


def _wait_console(tenant: Any, server: Any, facts: Facts) -> None:
    text = ""

    def told() -> bool:
        nonlocal text
        text = tenant.compute.get_server_console_output(server)["output"] or ""
        return bool(image.console_lines(text, "beat"))

    if not wait_until(told, CONSOLE_SECONDS, poll_seconds=1.0):
        tail = "".join(f"\n    {line}" for line in text.splitlines()[-8:])
        raise RackError(f"the guest told nothing within {CONSOLE_SECONDS:.0f} s; its console:{tail}")
    facts.nodes = image.console_lines(text, "node")
    facts.beat = image.console_lines(text, "beat")[-1]


def _collect(layout: Layout, connection: Any, memory: Adapter, server: str, facts: Facts) -> None:
    seen = connection.compute.get_server(server)
    facts.server, facts.host = server, seen.hypervisor_hostname
    facts.specs = dict(seen.flavor.extra_specs or {})
    found = memory.get(f"/allocations?consumer_uuid={server}").json()["allocations"]
    if len(found) != 1:
        raise RackError(
            f"the ledger holds {len(found)} allocations of {server}; log: {layout.log}/pondstack-controller*.log"
        )
    facts.ledger = found[0]
    facts.pool_after = _pool(memory)
    facts.split = _split(layout, server, facts.specs, seen.flavor.ram)
    names = {entry["uuid"]: entry["name"] for entry in _providers(layout)}
    claims = _service(layout, "placement").get(f"/allocations/{server}").json()["allocations"]
    facts.placement = {names.get(uuid, uuid): claim["resources"] for uuid, claim in claims.items()}


def check(facts: Facts) -> list[str]:
    """Return where guest, ledger and Placement contradict each other; nothing when all is well."""
    wrong = []
    claimed = sum(claim.get(RESOURCE_CLASS, 0) for claim in facts.placement.values())
    pool_mib = facts.ledger["pool_mib"]
    if claimed != pool_mib:
        wrong.append(f"Placement has {claimed} MiB of the pool, the ledger {pool_mib}")
    if facts.ledger["host"] != facts.host:
        wrong.append(f"Nova says {facts.host}, the ledger {facts.ledger['host']}")
    extents_mib = sum(extent["count"] for extent in facts.ledger["extents"]) * facts.ledger["slice_mib"]
    if extents_mib != pool_mib:
        wrong.append(f"the slices are {extents_mib} MiB, the allocation {pool_mib}")
    far = [node for node in facts.nodes if node["node"] > 0]
    if facts.nodes and (not far or any(node["cpulist"] for node in far)):
        wrong.append("the guest sees no CPU-less node")
    seen_mib = sum(node["memtotal_kib"] for node in far) / 1024
    if facts.nodes and not 0.9 * pool_mib <= seen_mib <= pool_mib:
        wrong.append(f"the guest sees {seen_mib:.0f} MiB without CPUs, the pool gave {pool_mib}")
    return wrong


def _split(layout: Layout, server: str, specs: dict[str, str], memory_mib: int) -> dict[str, Any]:
    """Return what the service remembered of an automatic split; a fixed one follows from the flavor alone."""
    parsed = sizing.parse_specs(specs)
    if parsed is not None and parsed.policy is sizing.Policy.FIXED:
        features = sizing.Features(server, memory_mib, vcpus=1, specs=parsed)
        return asdict(sizing.decide(features, sizing.StaticShare()))
    engine = sa.create_engine(database.mariadb(layout).database_url("pondstack"), poolclass=sa.NullPool)
    with Session(engine) as session:
        row = session.get(SplitRow, server)
        return {"source": row.source, "reason": row.reason} if row else {}


def _hosts(connection: Any, memory: Adapter) -> list[dict[str, Any]]:
    reach = {host["name"]: host for host in memory.get("/hosts").json()["hosts"]}
    found = []
    for hypervisor in connection.compute.hypervisors(details=True):
        agent = reach.get(hypervisor.name, {})
        found.append({"name": hypervisor.name, "type": hypervisor.hypervisor_type, "agent": agent})
    return sorted(found, key=lambda host: (host["type"] == "fake", host["name"]))


def _pool(memory: Adapter) -> dict[str, Any]:
    pool: dict[str, Any] = memory.get(f"/pools/{pool_uuid(pondstack_services.SERIAL)}").json()
    return pool


def _providers(layout: Layout) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _service(layout, "placement").get("/resource_providers").json()["resource_providers"]
    return found


def _service(layout: Layout, service_type: str) -> Adapter:
    version = {"placement": "1.39"}.get(service_type)
    session = keystone.session(layout)
    return Adapter(session, service_type=service_type, region_name="RegionOne", default_microversion=version)
