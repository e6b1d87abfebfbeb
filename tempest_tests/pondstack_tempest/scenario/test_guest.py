"""A guest with pool memory: what it sees, what the books say, and what it lives through."""

from tempest import config
from tempest.lib import decorators

from pondstack_tempest import hooks, waiters
from pondstack_tempest.scenario.base import ScenarioTest

CONF = config.CONF


class GuestBase(ScenarioTest):
    """A tenant's guest with a fixed share of pool memory."""

    @classmethod
    def skip_checks(cls) -> None:
        """Skip where guests do not get a node without CPUs."""
        super().skip_checks()
        if not CONF.pondstack.znuma:
            raise cls.skipException("[pondstack] znuma is false")

    def assert_znuma(self, server: str) -> None:
        """Assert that the console tells two NUMA nodes, the second without CPUs and of a slice's size."""
        self.until(lambda: len(self.nodes(server)) > 1, "the guest sees one NUMA node only")
        nodes = self.nodes(server)
        self.assertEqual([0, 1], sorted(nodes))
        if nodes[1].get("cpulist") is not None:
            self.assertNotEqual("", nodes[0]["cpulist"])
            self.assertEqual("", nodes[1]["cpulist"])
        if nodes[1].get("kib") is not None:
            seen_mib = int(str(nodes[1]["kib"])) / 1024
            self.assertGreater(seen_mib, 0.9 * self.slice_mib())
            self.assertLessEqual(seen_mib, self.slice_mib())


class GuestTest(GuestBase):
    """What a guest sees, and keeps."""

    @decorators.attr(type=["smoke", "slow"])
    @decorators.idempotent_id("5f0d7a5e-0e0b-4b43-8d5f-6f6c7c1b8f01")
    def test_the_guest_sees_a_node_without_cpus(self) -> None:
        """And deleting it returns its slices."""
        server = self.boot_fixed(guest=True)
        self.assert_znuma(server)
        self.delete(server)
        self.assert_returned(server)

    @decorators.attr(type="slow")
    @decorators.idempotent_id("0c6c9f1d-1e0f-4b0b-9b70-0d5a5f7b8f02")
    def test_stop_start_and_hard_reboot_keep_it(self) -> None:
        """The claim and the node are there again after each."""
        server = self.boot_fixed(guest=True)
        self.servers.stop_server(server)
        waiters.for_server(self.admin_servers, server, ["SHUTOFF"])
        self.servers.start_server(server)
        waiters.for_server(self.admin_servers, server, ["ACTIVE"])
        self.assert_holds(server, self.slice_mib())
        self.servers.reboot_server(server, type="HARD")
        waiters.for_server(self.admin_servers, server, ["ACTIVE"])
        self.assert_holds(server, self.slice_mib())
        self.assert_znuma(server)

    @decorators.attr(type="slow")
    @decorators.idempotent_id("e8b3b9b0-5e07-4b37-8d0c-2ad0c5c38f03")
    def test_a_live_migration_keeps_it(self) -> None:
        """The guest goes on elsewhere with as much pool memory, without an error; the source has none of it left."""
        if not CONF.compute_feature_enabled.live_migration:
            raise self.skipException("[compute-feature-enabled] live_migration is false")
        server = self.boot_fixed(guest=True)
        source = self.host_of(server)
        with self.undisturbed(server):
            self.admin_servers.live_migrate_server(server, host=None, block_migration="auto")
            self.until(lambda: self._left(server, source), f"{server} does not leave {source}")
            waiters.for_server(self.admin_servers, server, ["ACTIVE"])
        self.assert_holds(server, self.slice_mib())

    def _left(self, server: str, source: str) -> bool:
        shown = self.shown(server)
        moved = shown["OS-EXT-SRV-ATTR:hypervisor_hostname"] != source
        if not moved and shown["status"] == "ACTIVE" and not shown["OS-EXT-STS:task_state"]:
            self.fail(f"the live migration of {server} from {source} did not come about")
        return moved


@decorators.serial
class GuestAgentTest(GuestBase):
    """The agent of a host is not on a guest's way."""

    @decorators.attr(type="slow")
    @decorators.idempotent_id("7a3e1a0c-79c2-4a34-b0b1-1c44c2e48f04")
    def test_a_guest_does_not_notice_that_the_agent_restarts(self) -> None:
        """It goes on while the agent is dead and after, and holds the same slices."""
        services = self.services
        server = self.boot_fixed(guest=True)
        host, extents = self.host_of(server), self.assert_holds(server, self.slice_mib())["extents"]
        with self.undisturbed(server):
            self.addCleanup(services.start, hooks.AGENT, host)
            services.kill(hooks.AGENT, host)
            with self.undisturbed(server, beats=1):
                self.assertEqual(extents, self.allocation_of_guest(server)["extents"])
            services.start(hooks.AGENT, host)
        self.assertEqual(extents, self.assert_holds(server, self.slice_mib())["extents"])
