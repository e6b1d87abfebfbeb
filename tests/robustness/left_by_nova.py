"""What Nova leaves to its operator where a nova-compute is killed in the middle of Nova's own live migration."""

import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from pondstack.clients.nova import LIVE_MIGRATION_SECONDS
from pondstack.controller.pool.inventory import PROVIDER_PREFIX
from pondstack.domain.admission import consumers
from pondstack_rack.cloud_client import Cloud
from pondstack_rack.layout import program
from pondstack_rack.processes import environment
from pondstack_rack.rack import Rack
from pondstack_rack.services import database

COMMAND_SECONDS = 180.0
GENERATIONS = "1.28"
"""The microversion of Placement since which a claim is written with the generation of its consumer."""
_UNDER_WAY = frozenset({"accepted", "pre-migrating", "preparing", "queued", "running", "running (post-copy)"})

_ADOPTED = (
    "UPDATE instances SET host = :host, node = :host, task_state = NULL, vm_state = 'active', power_state = 1, "
    "compute_id = (SELECT id FROM compute_nodes WHERE host = :host AND deleted = 0) WHERE uuid = :server",
    "UPDATE migrations SET status = 'error' WHERE instance_uuid = :server AND status NOT IN "
    "('completed', 'error', 'failed', 'cancelled', 'done')",
)


class LeftByNova:
    """Of one rack. `providers`, `shared`: of hosts, and ours that hosts share, by name, once find_providers has run."""

    def __init__(self, rack: Rack) -> None:
        self.rack = rack
        self.cloud = Cloud.of_rack(rack.layout.root)
        self.providers: dict[str, str] = {}
        self.shared: dict[str, str] = {}

    def find_providers(self) -> None:
        """Read them; once Nova knows all hosts, and Placement what is lent."""
        every = self.cloud.placement.get("/resource_providers").json()["resource_providers"]
        self.shared = {item["name"]: item["uuid"] for item in every if item["name"].startswith(PROVIDER_PREFIX)}
        found = self.cloud.nova.get("/os-hypervisors/detail").json()["hypervisors"]
        self.providers = {item["hypervisor_hostname"]: item["id"] for item in found}

    def reset_error(self, server: str) -> bool:
        """Have a server that is in ERROR be ACTIVE again (`openstack server set --state active`); True if it was."""
        if self.cloud.nova.get(f"/servers/{server}").json()["server"]["status"] != "ERROR":
            return False
        self.cloud.nova.post(f"/servers/{server}/action", json={"os-resetState": {"state": "active"}})
        return True

    def put_right(self, server: str, host: str, task: str, domains: Mapping[str, str]) -> list[str]:
        """Do what Nova's operator does where a nova-compute died; returns what was left.

        What runs elsewhere is told to Nova, what it claims of a host that it never reached it claims of its own, claims
        of migrations go. Nothing is done while it may still move, since claims are of both hosts until then. `host`,
        `task` are Nova's; `domains`: libvirt's states by host.
        """
        if task or (len(domains) > 1 and "paused" in domains.values()):
            return []
        left = []
        running = [name for name, state in domains.items() if state == "running"]
        if len(running) == 1 and running != [host]:
            self.adopt(server, running[0])
            left.append(f"Nova had it on {host}, and libvirt on {running[0]} alone")
        elif running == [host] and self._claim_of(server, self.providers[host]):
            left.append(f"it claimed nothing of {host}, where it runs")
        return left + [f"claim of a migration that Nova gave up: {item}" for item in self.delete_orphans()]

    def disagreements(self) -> list[str]:
        """Return what the parts of the rack disagree on, whatever server it is of."""
        found = self.cloud.audit()["findings"]
        return [f"audit: {item['code']} {item['detail']}" for item in found if item["severity"] != "info"] + [
            f"Placement has a claim of no server: {item}" for item in self.strangers()
        ]

    def delete_orphans(self) -> list[str]:
        """Delete claims in Placement of migrations that Nova gave up; returns those that went.

        `nova-manage placement audit --delete` deletes what they have of hosts, and looks at nothing that hosts share:
        `openstack resource provider allocation delete` is for that.
        """
        found = self.strangers()
        if found:
            audit = ["placement", "audit", "--delete"]
            command = [program("nova-manage"), "--config-file", str(self.rack.layout.etc / "nova.conf"), *audit]
            subprocess.run(command, env=environment(), capture_output=True, check=False, timeout=COMMAND_SECONDS)
            for item in self._strangers(self.shared):
                self.cloud.placement.delete(f"/allocations/{item.partition(' ')[0]}")
        left = self.strangers() if found else []
        return [item for item in found if item not in left]

    def adopt(self, server: str, host: str) -> None:
        """Have Nova know that a server runs on a host: its database says so, since no command of Nova's can.

        A nova-compute that dies while libvirt migrates a guest does not hear that this has ended. What the server
        claims of its former host it claims of this one then (`openstack resource provider allocation set`).
        """
        engine = sa.create_engine(database.mariadb(self.rack.layout).database_url("nova"), poolclass=sa.NullPool)
        with engine.begin() as connection:
            for statement in _ADOPTED:
                connection.execute(sa.text(statement), {"server": server, "host": host})
        self._claim_of(server, self.providers[host])

    def _claim_of(self, server: str, provider: str) -> bool:
        """Have a server that claims nothing of its host claim what it, or its migration, claims of another one.

        False where nothing is to be done. Before claims of migrations go: `nova-manage placement audit --delete`
        deletes what a server claims of a host where Nova does not have it, and it would claim nothing then.
        """
        held = self._allocations(server)
        if provider in held["allocations"]:
            return False
        given_up = [item.partition(" ")[0] for item in self._strangers(self.providers)]
        sources = [held, *map(self._allocations, given_up)]
        hosts, claims = set(self.providers.values()), dict[str, Any]()
        for source in sources:
            for uuid, item in source["allocations"].items():
                claims.setdefault(provider if uuid in hosts else uuid, {"resources": item["resources"]})
        if provider not in claims:
            return False
        owner = next(source for source in sources if source["allocations"])
        body = {
            "allocations": claims,
            "project_id": owner["project_id"],
            "user_id": owner["user_id"],
            "consumer_generation": held.get("consumer_generation"),
        }
        self.cloud.placement.put(f"/allocations/{server}", json=body, microversion=GENERATIONS)
        return True

    def _allocations(self, consumer: str) -> dict[str, Any]:
        found: dict[str, Any] = self.cloud.placement.get(f"/allocations/{consumer}", microversion=GENERATIONS).json()
        return found

    def strangers(self) -> list[str]:
        """Return consumers in Placement that are no servers: what an interrupted migration of Nova left there."""
        return self._strangers(self.providers | self.shared)

    def _strangers(self, providers: Mapping[str, str]) -> list[str]:
        known = {item["id"] for item in self.cloud.servers("")}
        known |= {uuid for host in self.providers for uuid in consumers(host)}  # of what hosts lend
        claims = {uuid: name for name, provider in providers.items() for uuid in self.cloud.claims(provider)}
        return [f"{uuid} on {name}" for uuid, name in sorted(claims.items()) if uuid not in known]

    def migrations_under_way(self, server: str) -> list[tuple[str, bool]]:
        """Return the states of Nova's migrations of it that have not ended, and whether Nova has given one up.

        One whose nova-compute was killed before it had begun stays under way for ever.
        """
        found = self.cloud.nova.get(f"/os-migrations?instance_uuid={server}").json()["migrations"]
        before = datetime.now(UTC) - timedelta(seconds=LIVE_MIGRATION_SECONDS)
        written = [(item["status"], item["updated_at"] or item["created_at"]) for item in found]
        return [
            (status, datetime.fromisoformat(moment).replace(tzinfo=UTC) < before)
            for status, moment in written
            if status in _UNDER_WAY
        ]
