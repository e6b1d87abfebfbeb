"""Slices: list, filters, pages, show, what is refused."""

from tempest.lib import decorators, exceptions

from pondstack_tempest.base import MemoryTest


class SlicesTest(MemoryTest):
    """GET /pools/{pool}/slices and /pools/{pool}/slices/{index}."""

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("8ad6e5c3-95d0-4ab4-8d55-0b6f3f0f1a05")
    def test_slices_are_listed_and_shown(self) -> None:
        """Each slice of a pool is there once; a listed one is shown by its index."""
        pool = self.the_pool()
        slices = self.memory("Slices").list_slices(pool["uuid"], limit=1000)["slices"]
        self.assertEqual(list(range(pool["slices_total"])), [one["index"] for one in slices])
        shown = self.memory("Slices").show_slice(pool["uuid"], 0)
        self.assertEqual((0, pool["uuid"]), (shown["index"], shown["pool_uuid"]))

    @decorators.idempotent_id("1f0b7f3d-0d73-4d1e-8f4f-85a1f9cb1a06")
    def test_slices_are_filtered_by_state(self) -> None:
        """Only slices in the state that was asked for."""
        client = self.memory("Slices")
        for state in ("free", "online"):
            found = client.list_slices(self.the_pool()["uuid"], state=state)["slices"]
            self.assertEqual(set(), {one["state"] for one in found} - {state})

    @decorators.idempotent_id("c0d1a5a4-1fb7-4d8d-9c3d-5ed2a6f8ba07")
    def test_pages_follow_the_marker(self) -> None:
        """Small pages give all slices once, in order, and the last has no next link."""
        pool = self.the_pool()["uuid"]
        self.assert_pages("Slices", "list_slices", "slices", "index", pool, limit=3)

    @decorators.attr(type="negative")
    @decorators.idempotent_id("d7d3e2ae-5c3e-4c6a-8a85-3d3b7d1b7c08")
    def test_unknown_slices_and_states_are_refused(self) -> None:
        """404 for an index that is not there or no number, and for an unknown pool; 400 for an unknown state."""
        client, pool = self.memory("Slices"), self.the_pool()
        for index in (pool["slices_total"], "first", -1):
            self.assertRaises(exceptions.NotFound, client.show_slice, pool["uuid"], index)
        self.assertRaises(exceptions.NotFound, client.list_slices, self.unknown_uuid())
        self.assertRaises(exceptions.BadRequest, client.list_slices, pool["uuid"], state="lost")
