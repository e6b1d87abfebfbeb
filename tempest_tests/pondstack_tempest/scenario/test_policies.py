"""What flavors ask for, and what their servers get."""

from typing import Any

from tempest import config
from tempest.lib import decorators, exceptions
from tempest.lib.common.utils import data_utils

from pondstack_tempest import waiters
from pondstack_tempest.scenario.base import ScenarioTest

CONF = config.CONF

BAD_SPECS: tuple[dict[str, str], ...] = (
    {"pond:policy": "sometimes"},
    {"pond:policy": "fixed", "pond:pool_mb": "1000"},
    {"pond:policy": "fixed", "pond:pool_mb": "0"},
    {"pond:policy": "auto", "pond:max_pool_percent": "101"},
    {"pond:policy": "auto", "pond:pdm": "0"},
)


class PoliciesTest(ScenarioTest):
    """Fixed, automatic and local shares."""

    @decorators.idempotent_id("9f1c5a20-0b9c-4f07-8d0c-6d0bd1f88f05")
    def test_a_fixed_share_is_given_and_returned(self) -> None:
        """Two slices; ledger and Placement agree; deleting the server returns them."""
        server = self.boot_fixed(2)
        held = self.assert_holds(server, 2 * self.slice_mib())
        self.assertEqual(2, sum(extent["count"] for extent in held["extents"]))
        self.assertEqual(CONF.pondstack.local_mib, held["local_mib"])
        self.delete(server)
        self.assert_returned(server)

    @decorators.idempotent_id("2f0ac1fc-5f66-4b33-9b11-3f1a0c1d8f06")
    def test_local_and_plain_flavors_get_nothing_of_the_pool(self) -> None:
        """`pond:policy=local` is a guarantee, and without any spec Nova is as it was."""
        for specs in ({"pond:policy": "local"}, {}):
            server = self.boot(self.flavor(CONF.pondstack.local_mib, specs))
            self.assert_holds(server, 0)

    @decorators.idempotent_id("60c5a3a1-3a41-4c10-9c5e-3f5f7d0b8f07")
    def test_an_automatic_share_is_within_its_bounds(self) -> None:
        """Whole slices, no more than the flavor allows, and the rest is local; a bound of 0 is all local."""
        slice_mib = self.slice_mib()
        ram_mib = CONF.pondstack.local_mib + 4 * slice_mib
        server = self.boot(self.flavor(ram_mib, {"pond:policy": "auto", "pond:max_pool_percent": "50"}))
        pool_mib = self.claimed_mib(server)
        self.assertLessEqual(pool_mib, ram_mib // 2)
        self.assertEqual(0, pool_mib % slice_mib)
        held = self.assert_holds(server, pool_mib)
        if held:
            self.assertEqual(ram_mib, held["local_mib"] + held["pool_mib"])
        local = self.boot(self.flavor(ram_mib, {"pond:policy": "auto", "pond:max_pool_percent": "0"}))
        self.assert_holds(local, 0)

    @decorators.attr(type="negative")
    @decorators.idempotent_id("d5e3f0ef-7d52-43a0-90a6-37a5a1a28f08")
    def test_more_than_the_pool_has_is_refused_with_its_name(self) -> None:
        """ERROR; the fault names a pool and the shortage, and nothing is left behind."""
        pools = self.memory("Pools").list_pools()["pools"]
        largest = max(pool["slices_total"] for pool in pools)
        server = self.boot(self.fixed(largest + 1), until="ERROR")
        fault = self.shown(server)["fault"]["message"]
        self.assertIn("No valid host", fault)
        self.assertTrue(any(pool["name"] in fault for pool in pools), fault)
        self.assertEqual([], self.allocations(server))

    @decorators.attr(type="negative")
    @decorators.idempotent_id("3f4a3c8d-69a7-4f4d-9b5a-d0b7cb2d8f09")
    def test_malformed_specs_are_refused(self) -> None:
        """400 when they are set."""
        flavor = self.flavor(CONF.pondstack.local_mib + 2 * self.slice_mib(), {})
        for specs in BAD_SPECS:
            self.assertRaises(
                exceptions.BadRequest, self.os_admin.flavors_client.set_flavor_extra_spec, flavor, **specs
            )

    @decorators.idempotent_id("b40e2be3-8d90-4f88-bb26-5a7d2f2d8f10")
    def test_servers_that_boot_together_share_no_slice(self) -> None:
        """Three servers of one request have a slice each."""
        name = data_utils.rand_name("pond-many", prefix=CONF.resource_name_prefix)
        self.servers.create_server(
            name=name,
            flavorRef=self.fixed(),
            imageRef=CONF.compute.image_ref,
            networks="none",
            min_count=3,
            max_count=3,
        )
        made = [server["id"] for server in self.servers.list_servers(name=name)["servers"]]
        for server in made:
            self.addCleanup(self.delete, server)
        self.assertEqual(3, len(made))
        taken: list[Any] = []
        for server in made:
            waiters.for_server(self.admin_servers, server, ["ACTIVE"])
            held = self.assert_holds(server, self.slice_mib())
            taken += [(held["pool_uuid"], extent["start"]) for extent in held["extents"]]
        self.assertEqual(3, len(set(taken)), taken)
