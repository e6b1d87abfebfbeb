"""Pools: list, show, what is refused."""

from tempest.lib import decorators, exceptions

from pondstack_tempest.base import MemoryTest


class PoolsTest(MemoryTest):
    """GET /pools and /pools/{pool}."""

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("3c1f51f5-6a35-4d62-9f7f-0b8f0f5f3a11")
    def test_a_pool_is_listed_and_shown(self) -> None:
        """A listed pool is shown by its UUID and by its name, and its slices add up."""
        listed = self.the_pool()
        shown = self.memory("Pools").show_pool(listed["uuid"])
        self.assertEqual(listed["serial"], shown["serial"])
        self.assertEqual(listed["uuid"], self.memory("Pools").show_pool(listed["name"])["uuid"])
        self.assertEqual(shown["slices_total"], sum(shown["slices"].values()))

    @decorators.idempotent_id("a1ab8f1b-77dc-4fd1-b4f2-3f8a0a5f8a02")
    def test_pages_follow_the_marker(self) -> None:
        """Pages of one pool each give all pools once, in order."""
        self.assert_pages("Pools", "list_pools", "pools", "uuid")

    @decorators.attr(type="negative")
    @decorators.idempotent_id("40a4cf6f-6f0a-49a0-9d9c-4b8c2a6b5d03")
    def test_an_unknown_pool_is_not_found(self) -> None:
        """404 with the code of the error."""
        error = self.assert_status(404, self.memory("Pools").show_pool, self.unknown_uuid())
        self.assertEqual("pondstack.not_found", error["code"])
        self.assertTrue(error["request_id"].startswith("req-"))

    @decorators.attr(type="negative")
    @decorators.idempotent_id("5cd2b2f6-36c1-4dd2-9a0e-6c7c5ad4d304")
    def test_an_unknown_parameter_is_refused(self) -> None:
        """400, never silently ignored; so are a limit of nothing and one that is no number."""
        client = self.memory("Pools")
        for query in ({"colour": "blue"}, {"limit": 0}, {"limit": "many"}):
            self.assertRaises(exceptions.BadRequest, client.list_pools, **query)
