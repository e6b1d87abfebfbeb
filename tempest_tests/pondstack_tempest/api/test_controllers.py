"""Controllers and the leader: list, show, fail-overs that are refused."""

from tempest.lib import decorators, exceptions

from pondstack_tempest.base import MemoryTest


class LeaderTest(MemoryTest):
    """GET /leader."""

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("d1c9a4f2-5f8b-4f0b-9d6f-2c5d8f6e1a19")
    def test_a_fresh_leader_is_shown(self) -> None:
        """Somebody leads, with an epoch."""
        leader = self.memory("Leader").show_leader()
        self.assertTrue(leader["fresh"])
        self.assertGreaterEqual(leader["epoch"], 1)


class ControllersTest(MemoryTest):
    """GET /controllers, /controllers/{name}, POST /controllers/failover."""

    min_microversion = "1.2"

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("3f7bb5d0-49ef-4a26-ae8e-30ddc8d51a20")
    def test_controllers_are_listed_and_shown(self) -> None:
        """One of them leads, with the epoch of the lease, and reaches the broker."""
        listed = self.memory("Controllers").list_controllers()["controllers"]
        (leader,) = [one for one in listed if one["role"] == "leader"]
        shown = self.memory("Controllers").show_controller(leader["name"])
        self.assertEqual(leader["name"], shown["name"])
        self.assertTrue(shown["reaches_broker"])

    @decorators.idempotent_id("ca8c4c55-1ff6-4b8f-8c83-6f6e9ecb1a21")
    def test_pages_follow_the_marker(self) -> None:
        """Pages of one controller each give all controllers once, in order."""
        self.assert_pages("Controllers", "list_controllers", "controllers", "name")

    @decorators.attr(type=["negative", "smoke"])
    @decorators.idempotent_id("41d9fe1d-4b63-4f4e-98ab-1d52ecab1a22")
    def test_a_failover_to_nobody_is_refused(self) -> None:
        """404 to an unknown controller, 400 for a malformed body; the leader stays."""
        client = self.memory("Controllers")
        before = self.memory("Leader").show_leader()["epoch"]
        self.assertRaises(exceptions.NotFound, client.show_controller, self.unknown_uuid())
        self.assertRaises(exceptions.NotFound, client.fail_over, to=self.unknown_uuid())
        self.assertRaises(exceptions.BadRequest, client.fail_over, colour="blue")
        self.assertEqual(before, self.memory("Leader").show_leader()["epoch"])

    @decorators.attr(type="negative")
    @decorators.idempotent_id("b93a1a1e-2d0c-4de0-8d8f-5a7f6f6d1a23")
    def test_a_failover_to_the_leader_is_a_conflict(self) -> None:
        """409: it leads already."""
        client = self.memory("Controllers")
        (leader,) = [one for one in client.list_controllers()["controllers"] if one["role"] == "leader"]
        self.assertRaises(exceptions.Conflict, client.fail_over, to=leader["name"])
