"""A server with pool memory is rebuilt, resized, migrated: it holds what it should, once."""

from tempest import config
from tempest.lib import decorators

from pondstack_tempest import waiters
from pondstack_tempest.scenario.base import ScenarioTest

CONF = config.CONF


class MovesTest(ScenarioTest):
    """Each ends with as much pool memory as the flavor says, on the host that the server is on."""

    def _skip_without_moves(self, feature: str) -> None:
        if not getattr(CONF.compute_feature_enabled, feature) or CONF.compute.min_compute_nodes < 2:
            raise self.skipException(
                f"[compute-feature-enabled] {feature} is false, or [compute] min_compute_nodes < 2"
            )

    @decorators.idempotent_id("5a4e0f6c-96b5-4d8d-8e3a-0f1d3f0b8f11")
    def test_a_rebuild_keeps_it(self) -> None:
        """As much as before, and the books agree."""
        server = self.boot_fixed()
        self.servers.rebuild_server(server, CONF.compute.image_ref)
        waiters.for_server(self.admin_servers, server, ["ACTIVE"])
        self.assert_holds(server, self.slice_mib())

    @decorators.idempotent_id("f6b9dbb3-95e1-4a7b-8d6d-0f4b6e9b8f12")
    def test_a_resize_decides_anew(self) -> None:
        """From one slice to two; to a flavor without pool memory, reverted and confirmed."""
        self._skip_without_moves("resize")
        server = self.boot_fixed()
        self._resize(server, self.fixed(2))
        self.admin_servers.confirm_resize_server(server)
        waiters.for_server(self.admin_servers, server, ["ACTIVE"])
        self.assert_holds(server, 2 * self.slice_mib())
        plain = self.flavor(CONF.pondstack.local_mib, {})
        self._resize(server, plain)
        self.admin_servers.revert_resize_server(server)
        waiters.for_server(self.admin_servers, server, ["ACTIVE"])
        self.assert_holds(server, 2 * self.slice_mib())
        self._resize(server, plain)
        self.admin_servers.confirm_resize_server(server)
        waiters.for_server(self.admin_servers, server, ["ACTIVE"])
        self.assert_holds(server, 0)
        self.assert_returned(server)

    @decorators.idempotent_id("f5b2d8a5-1fcb-4ff7-a7e1-6f4ccf2f8f13")
    def test_a_cold_migration_keeps_it(self) -> None:
        """On the new host after it is confirmed; on the old one after another is reverted."""
        self._skip_without_moves("cold_migration")
        server = self.boot_fixed()
        first = self.host_of(server)
        self.admin_servers.migrate_server(server)
        waiters.for_server(self.admin_servers, server, ["VERIFY_RESIZE"])
        second = self.host_of(server)
        self.assertNotEqual(first, second)
        self.admin_servers.confirm_resize_server(server)
        waiters.for_server(self.admin_servers, server, ["ACTIVE"])
        self.assert_holds(server, self.slice_mib())
        self.admin_servers.migrate_server(server)
        waiters.for_server(self.admin_servers, server, ["VERIFY_RESIZE"])
        self.admin_servers.revert_resize_server(server)
        waiters.for_server(self.admin_servers, server, ["ACTIVE"])
        self.assertEqual(second, self.host_of(server))
        self.assert_holds(server, self.slice_mib())

    def _resize(self, server: str, flavor: str) -> None:
        self.admin_servers.resize_server(server, flavor)
        waiters.for_server(self.admin_servers, server, ["VERIFY_RESIZE"])
