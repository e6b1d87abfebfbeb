"""Hosts and controllers die; nothing of the pool is lost or given twice. Needs [pondstack] service_command."""

from typing import Any

from tempest import config
from tempest.lib import decorators, exceptions

from pondstack_tempest import hooks, waiters
from pondstack_tempest.scenario.base import ScenarioTest

CONF = config.CONF


@decorators.serial
class HostFailureTest(ScenarioTest):
    """A host that tests may break dies with a server on it."""

    min_microversion = "1.1"

    @decorators.idempotent_id("7d2bd1b7-3c43-4b4d-b7e9-7c0f5cfe8f16")
    def test_a_server_is_evacuated_from_a_dead_host(self) -> None:
        """It gets as much pool memory elsewhere; the dead host is fenced, and takes part again when it is back."""
        if CONF.compute.min_compute_nodes < 2:
            raise self.skipException("[compute] min_compute_nodes < 2: nowhere to evacuate to")
        services, host = self.services, self.an_expendable_host()
        server = self.boot_fixed(host=host)
        self.addCleanup(self._repair, services, host)
        services.kill(hooks.COMPUTE, host)
        services.kill(hooks.AGENT, host)
        self._set_down(host, down=True)
        self.memory("Hosts").fence_host(host, reason="a test of Tempest killed it", force=True)
        self.admin_servers.evacuate_server(server)
        self.until(lambda: self.host_of(server) != host, f"{server} is not evacuated from {host}")
        waiters.for_server(self.admin_servers, server, ["ACTIVE", "SHUTOFF"])
        self.until(lambda: self._held_at(server) == [self.host_of(server)], f"{server} does not hold its memory")
        self._repair(services, host)
        self.assert_holds(server, self.slice_mib())
        self.assertEqual(0, self.memory("Hosts").show_host(host)["pool_mib"])

    @decorators.idempotent_id("0f5cb8c9-1e2f-4dd1-8d1d-6e6a6f728f17")
    def test_a_host_comes_back_with_what_it_had(self) -> None:
        """Agent and compute are killed and started: the server holds the same slices."""
        services, host = self.services, self.an_expendable_host()
        server = self.boot_fixed(host=host)
        extents = self.assert_holds(server, self.slice_mib())["extents"]
        self.addCleanup(self._repair, services, host)
        services.kill(hooks.AGENT, host)
        services.kill(hooks.COMPUTE, host)
        self.assertEqual(extents, self.allocation_of_guest(server)["extents"])
        self._repair(services, host)
        self.assertEqual(extents, self.assert_holds(server, self.slice_mib())["extents"])

    def _held_at(self, server: str) -> list[str]:
        return [one["host"] for one in self.allocations(server) if one["state"] == "online"]

    def _set_down(self, host: str, *, down: bool) -> None:
        client = self.os_admin.services_client
        (service,) = client.list_services(host=host, binary=hooks.COMPUTE)["services"]
        client.update_service(service["id"], forced_down=down)

    def _repair(self, services: hooks.Services, host: str) -> None:
        services.start(hooks.AGENT, host)
        self.until(lambda: self.memory("Hosts").show_host(host)["up"], f"the agent of {host} does not report")
        self.until(lambda: self._unfenced(host), f"{host} stays fenced")
        services.start(hooks.COMPUTE, host)
        # Nova's order: a compute that was forced down first sees which servers were evacuated from it.
        self._set_down(host, down=False)

    def _unfenced(self, host: str) -> bool:
        client = self.memory("Hosts")
        if not client.show_host(host)["fenced"]:
            return True
        try:
            client.unfence_host(host)
        except exceptions.Conflict:
            return False  # it has not reported yet that it holds nothing
        return True


@decorators.serial
class ControllerFailureTest(ScenarioTest):
    """The controller that leads dies, or hands over."""

    min_microversion = "1.1"

    @decorators.idempotent_id("e0b1d9ad-1d0b-4ad5-8f6d-2c7f5f6d8f18")
    def test_the_leader_dies_while_a_server_boots(self) -> None:
        """The build ends, well or not; the books agree, and deleting the server returns all."""
        services, leader = self.services, self._leader()
        server = self.boot(self.fixed(), until="")
        self.until(lambda: self._under_way(server), f"{server} does not boot")
        self.addCleanup(services.start, hooks.CONTROLLER, leader)
        services.kill(hooks.CONTROLLER, leader)
        ended = waiters.for_server(self.admin_servers, server, ["ACTIVE", "ERROR"])
        services.start(hooks.CONTROLLER, leader)
        self.until(lambda: self.memory("Leader").show_leader()["fresh"], "nobody leads")
        if ended["status"] == "ACTIVE":
            self.assert_holds(server, self.claimed_mib(server))
        self.delete(server)
        self.assert_returned(server)

    @decorators.idempotent_id("2a3ad2a0-5ad0-4b1e-a5b7-4d0d6b7e8f19")
    def test_the_lead_changes_hands(self) -> None:
        """Another controller leads with a higher epoch, and servers boot and end as before."""
        if not CONF.pondstack.ha:
            raise self.skipException("[pondstack] ha is false")
        held = self.boot_fixed()
        extents = self.assert_holds(held, self.slice_mib())["extents"]
        begun = self.memory("Controllers").fail_over()
        self.until(lambda: self._leads_after(begun), f"nobody took over from {begun['from']}")
        self.assertEqual(extents, self.assert_holds(held, self.slice_mib())["extents"])
        server = self.boot_fixed()
        self.delete(server)
        self.assert_returned(server)

    def _under_way(self, server: str) -> bool:
        return bool(self.allocations(server)) or self.shown(server)["status"] != "BUILD"

    def _leader(self) -> str:
        (leader,) = [one for one in self.memory("Controllers").list_controllers()["controllers"] if _leads(one)]
        return str(leader["name"])

    def _leads_after(self, begun: dict[str, Any]) -> bool:
        leader = self.memory("Leader").show_leader()
        return bool(leader["fresh"]) and leader["epoch"] > begun["epoch"] and self._leader() != begun["from"]


def _leads(controller: dict[str, Any]) -> bool:
    return bool(controller["role"] == "leader")
