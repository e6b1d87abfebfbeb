"""Nova with all of pondstack behind it: Placement, ledger, agents and device tell the same story after each move."""

import threading
from typing import Any

from pondstack.rpc.identity.identity import Identity, Role
from pondstack_nova import virt_fake
from pondstack_nova.counters import SPLIT_FALLBACKS
from pondstack_rack.wait import Deadline
from tests.functional.rack import NovaWithRack

POOL = "CUSTOM_POND_MEMORY_MB"


class TestRack(NovaWithRack):
    """Moves and bad days of a guest with pool memory."""

    def same_everywhere(self, server: dict[str, Any], pool_mib: int = 1024) -> None:
        """The guest's host, and only it, has the slices, in the ledger and in Placement; then all agree."""
        host = self.host_of(server)

        def agree() -> None:
            assert self.ledger_of(server) == {host: pool_mib}
            claim = self.claim(server["id"])
            assert claim[self.pool_name()] == {POOL: pool_mib}
            assert set(claim) == {self.pool_name(), host}
            free = self.slices - pool_mib // 1024
            assert self.slices_by_state() == {"online": pool_mib // 1024, "free": free}

        self.eventually(agree)
        self.settled()

    def all_free(self) -> None:
        """Nothing is claimed, nothing is held, every slice is free and sanitised."""

        def agree() -> None:
            assert self.pool_used_mib() == 0
            assert self.slices_by_state() == {"free": self.slices}

        self.eventually(agree)
        self.settled()

    def pool_name(self) -> str:
        """Return the name of the pool's provider."""
        return str(self._get_resource_provider_by_uuid(self.pool)["name"])

    def test_boot_resize_delete(self) -> None:
        """Fixed and auto flavors; a resize changes the share; all is free in the end."""
        server = self.boot_pond()
        self.same_everywhere(server)
        server = self._resize_server(server, self.flavor(8192, policy="fixed", pool_mb="3072"))
        self._confirm_resize(server)
        self.same_everywhere(server, 3072)
        auto = self.boot(self.flavor(7168, policy="auto"))
        self.eventually(lambda: self._is_online(auto, 1024))
        self._delete_server(server)
        self._delete_server(auto)
        self.all_free()

    def test_resize_of_the_same_size(self) -> None:
        """The new flavor's specs decide, not what the server has; a cold migration keeps what it has."""
        server = self.boot(self.flavor(7168, policy="fixed", pool_mb="3072"))
        self.same_everywhere(server, 3072)
        server = self._resize_server(server, self.flavor(7168, policy="auto"))
        self._confirm_resize(server)
        self.same_everywhere(server)
        server = self._migrate_server(server)
        self._confirm_resize(server)
        self.same_everywhere(server)
        server = self._resize_server(server, self.flavor(7168, policy="auto", max_pool_percent="0"))
        self._confirm_resize(server)
        assert self.claim(server["id"]) == {self.host_of(server): {"MEMORY_MB": 7168}}
        self.all_free()

    def test_cold_migration(self) -> None:
        """Confirmed, then another one reverted."""
        server = self._migrate_server(self.boot_pond())
        self._confirm_resize(server)
        self.same_everywhere(server)
        server = self._migrate_server(server)
        self._revert_resize(server)
        self.same_everywhere(server)
        self._delete_server(server)
        self.all_free()

    def test_live_migration(self) -> None:
        """New slices at the destination; the source's are released and sanitised."""
        server = self.boot_pond(2048)
        source = self.host_of(server)
        server = self._live_migrate(server)
        assert self.host_of(server) != source
        self.same_everywhere(server, 2048)

    def asked_by(self, host: str) -> None:
        """Have each question of what a server holds come from a host's nova-compute: this bus signs nothing."""
        self.stub_out("pondstack_agent.endpoint.caller_of", lambda _context: Identity(Role.COMPUTE, host))

    def test_a_destination_hears_what_moves_to_it(self) -> None:
        """Its claim is in Placement by the time that Nova calls it; nobody else hears anything."""
        server = self.boot_pond(2048)
        source = self.host_of(server)
        destination, other = (host for host in self.hosts if host != source)
        self.asked_by(other)
        body = {"os-migrateLive": {"host": destination, "block_migration": "auto"}}
        self.api.post_server_action(server["id"], body)
        self._wait_for_migration_status(server, ["error", "failed"])
        assert self.host_of(server) == source
        self.same_everywhere(self._wait_for_state_change(server, "ACTIVE"), 2048)
        self.asked_by(destination)
        self.api.post_server_action(server["id"], body)
        self._wait_for_migration_status(server, ["completed"])
        server = self._wait_for_state_change(server, "ACTIVE")
        assert self.host_of(server) == destination
        self.same_everywhere(server, 2048)

    def test_evacuation(self) -> None:
        """The dead host's slices come back once its compute does."""
        server = self.boot_pond()
        source = self.host_of(server)
        self.computes[source].stop()
        self.api.put_service_force_down(self.computes[source].service_ref.uuid, True)
        server = self._evacuate_server(server)
        assert self.host_of(server) != source
        self.restart_compute_service(self.computes[source])
        self.same_everywhere(server)

    def test_shelve(self) -> None:
        """Offloaded guests hold nothing."""
        server = self.boot_pond()
        self._shelve_server(server)
        self.all_free()
        self.same_everywhere(self._unshelve_server(server))

    def test_over_ask(self) -> None:
        """The tenant's fault names pool and shortage; the buffer is not to be had."""
        server = self.boot_pond(8192, 16384, expected_state="ERROR")
        message = self.fault_of(server)
        assert message.startswith(
            "No valid host was found. 8192 MiB of pool memory are wanted, pool pool0 has 7168 MiB"
        )
        assert "(1024 MiB short)" in message
        self.all_free()

    def test_disabled_host_gets_none(self) -> None:
        """`openstack memory host set --disable`: guests with pool memory go elsewhere."""
        for host in self.hosts[1:]:
            self.api_of_controller.set_host(name=host, enabled=False, reason="test", generation=None)
        for _ in range(2):
            assert self.host_of(self.boot_pond()) == self.hosts[0]

    def test_controller_down(self) -> None:
        """A server that boots meanwhile gets its split, and its slices from the controller that follows."""
        server = self.boot_pond()
        self.flags(snapshot_max_age_seconds=1.0, group="pondstack")
        self.flags(attach_timeout_seconds=120, group="pondstack")
        self.stop_controller()
        before = SPLIT_FALLBACKS.counts()
        body = self._build_server(flavor_id=self.flavor(4096, policy="fixed", pool_mb="1024"), networks="none")
        meanwhile = self.api.post_server({"server": body})
        self.eventually(lambda: self.has_claim(meanwhile))
        self._delete_server(server)
        self.run_controller()
        meanwhile = self._wait_for_state_change(meanwhile, "ACTIVE")
        self.same_everywhere(meanwhile)
        assert SPLIT_FALLBACKS.counts() == before

    def has_claim(self, server: dict[str, Any]) -> None:
        """Assert that it was placed with pool memory, which no controller has given it yet."""
        assert self.claim(server["id"]).get(self.pool_name()) == {POOL: 1024}
        assert self.api.get_server(server["id"])["status"] == "BUILD"

    def _is_online(self, server: dict[str, Any], pool_mib: int) -> None:
        assert self.ledger_of(server) == {self.host_of(server): pool_mib}


class TestLongMigration(NovaWithRack):
    """A live migration that outlasts the grace of a missing claim, which is as short as can be here."""

    unclaimed_grace_seconds = 1

    def migrate(self, fails: bool) -> dict[str, Any]:
        """Migrate a guest live; meanwhile the controller looks, repairs, and takes nothing from the source."""
        server = self.boot_pond(2048)
        source, arrived, go_on = self.host_of(server), threading.Event(), threading.Event()
        self.addCleanup(go_on.set)
        original = virt_fake.PondFakeDriver.live_migration

        def wait(driver: Any, context: Any, instance: Any, dest: Any, post: Any, recover: Any, *more: Any) -> None:
            arrived.set()
            assert go_on.wait(120)
            if fails:
                recover(context, instance, dest, migrate_data=more[-1])
            else:
                original(driver, context, instance, dest, post, recover, *more)

        self.stub_out("pondstack_nova.virt_fake.PondFakeDriver.live_migration", wait)
        self.api.post_server_action(server["id"], {"os-migrateLive": {"host": None, "block_migration": "auto"}})
        assert arrived.wait(60)
        (target,) = set(self.ledger_of(server)) - {source}
        overdue = Deadline(3 * self.unclaimed_grace_seconds)
        while not overdue.over:
            audit = self.api_of_controller.audit(repair=True)
            assert audit["clean"], audit["findings"]
            assert self.ledger_of(server) == {source: 2048, target: 2048}
            overdue.pause()
        go_on.set()
        self._wait_for_migration_status(server, ["error", "failed"] if fails else ["completed"])
        server = self._wait_for_state_change(server, "ACTIVE")
        host = source if fails else target
        assert self.host_of(server) == host
        self.eventually(lambda: self.has_exactly(server, host))
        self.settled()
        return server

    def has_exactly(self, server: dict[str, Any], host: str) -> None:
        """Assert that the guest's host, and only it, has the slices."""
        assert self.ledger_of(server) == {host: 2048}
        assert self.slices_by_state() == {"online": 2, "free": self.slices - 2}

    def test_it_completes(self) -> None:
        """The source's slices come back after its end."""
        self.migrate(fails=False)

    def test_it_fails(self) -> None:
        """The guest still has its slices."""
        self.migrate(fails=True)


class TestSilentAgents(NovaWithRack):
    """Agents that the controller has given up."""

    agent_down_seconds = 10

    def test_their_hosts_are_not_tried(self) -> None:
        """PondFilter knows from the snapshot; guests without pool memory may still go there."""
        for host in self.hosts[1:]:
            self.stop_agent(host)

        def noticed() -> None:
            assert self.api_of_controller.snapshot(timeout_seconds=30).usable_hosts == self.hosts[:1]

        self.eventually(noticed)
        for _ in range(2):
            assert self.host_of(self.boot_pond()) == self.hosts[0]
        plain = {self.host_of(self.boot(self.flavor(2048), host=host)) for host in self.hosts}
        assert plain == set(self.hosts)
