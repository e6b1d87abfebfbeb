"""What tenants see of their own pool memory, and of others': nothing."""

from typing import Any, ClassVar

from tempest.lib import decorators, exceptions

from pondstack_tempest.base import ADMIN
from pondstack_tempest.scenario.base import ScenarioTest

PLACE = {"host", "pool_uuid", "pool_name", "slice_mib", "extents"}


class TenantsTest(ScenarioTest):
    """Two tenants, one server."""

    credentials: ClassVar[list[Any]] = [ADMIN, "primary", "alt"]

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("ad0d0a58-4b6a-4be4-9c39-0b8c4f1c8f14")
    def test_a_tenant_sees_their_own_allocations_without_their_place(self) -> None:
        """No host, pool or slice; the other tenant sees none of it, by list, by UUID or by project."""
        server = self.boot_fixed()
        own, other = self.memory("Allocations", "primary"), self.memory("Allocations", "alt")
        (held,) = own.list_allocations(consumer_uuid=server)["allocations"]
        self.assertEqual(set(), PLACE & set(held))
        self.assertEqual(self.os_primary.credentials.project_id, held["project_id"])
        self.assertEqual(held["uuid"], own.show_allocation(held["uuid"])["uuid"])

        self.assertNotIn(held["uuid"], [one["uuid"] for one in other.list_allocations()["allocations"]])
        self.assertEqual([], other.list_allocations(consumer_uuid=server)["allocations"])
        self.assertRaises(exceptions.NotFound, other.show_allocation, held["uuid"])
        self.assertRaises(exceptions.Forbidden, other.list_allocations, project_id=held["project_id"])
        for client in (own, other):
            self.assertRaises(exceptions.Forbidden, client.list_allocations, host="any")

    @decorators.idempotent_id("c2b1a1a8-3a3b-47a0-88c3-0d1b1c9f8f15")
    def test_the_operator_finds_allocations_by_all_filters(self) -> None:
        """By consumer, project, host and pool; pages follow the marker; an unknown UUID is a 404."""
        servers = [self.boot_fixed() for _ in range(2)]
        client = self.memory("Allocations")
        held = self.allocation_of_guest(servers[0])
        for query in ("project_id", "host", "pool_uuid", "consumer_uuid"):
            found = client.list_allocations(**{query: held[query]}, limit=1000)["allocations"]
            self.assertIn(held["uuid"], [one["uuid"] for one in found], query)
            self.assertEqual({held[query]}, {one[query] for one in found})
        of_project = client.list_allocations(project_id=held["project_id"])["allocations"]
        pages = [client.list_allocations(project_id=held["project_id"], limit=1)]
        pages += [client.list_allocations(project_id=held["project_id"], limit=1, marker=of_project[0]["uuid"])]
        self.assertEqual([one["uuid"] for one in of_project], [page["allocations"][0]["uuid"] for page in pages])
        self.assertEqual(["next"], [link["rel"] for link in pages[0]["links"]])
        self.assertNotIn("links", pages[1])
        self.assertRaises(exceptions.NotFound, client.show_allocation, self.unknown_uuid())
