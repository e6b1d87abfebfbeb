"""Lenders and buffers: lists, what is refused. A host that lends is a scenario."""

from tempest.lib import decorators, exceptions

from pondstack_tempest.base import MemoryTest


class LendersTest(MemoryTest):
    """GET /lenders and below, POST /hosts/{name}/delegate and /reclaim."""

    min_microversion = "1.5"

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("2e5e1f0b-c2d2-4f8f-a1b8-7f3b2b0f1a24")
    def test_lenders_are_listed_and_shown(self) -> None:
        """Each lender's buffers add up to what it lends."""
        for lender in self.memory("Lenders").list_lenders()["lenders"]:
            shown = self.memory("Lenders").show_lender(lender["host"])
            self.assertEqual(shown["lent_mib"], sum(shown["buffers"].values()) * shown["buffer_mib"])

    @decorators.attr(type=["negative", "smoke"])
    @decorators.idempotent_id("99d3c3a1-1c06-4e1c-9a56-2b2a5f3d1a25")
    def test_a_host_that_lends_nothing_is_no_lender(self) -> None:
        """404, and so are its buffers."""
        unknown = self.unknown_uuid()
        self.assertRaises(exceptions.NotFound, self.memory("Lenders").show_lender, unknown)
        self.assertRaises(exceptions.NotFound, self.memory("Buffers").list_buffers, unknown)
        self.assertRaises(exceptions.NotFound, self.memory("Buffers").show_buffer, unknown, 0)

    @decorators.attr(type=["negative", "smoke"])
    @decorators.idempotent_id("0c6f2b1a-6d1d-4b5a-8a9d-8e1b5c3e1a26")
    def test_malformed_requests_to_lend_are_refused(self) -> None:
        """400 for amounts and kinds that are none, 404 for an unknown host; it lends what it lent."""
        client, name = self.memory("Hosts"), self.a_host()["name"]
        for body in ({}, {"mib": -1}, {"mib": "much"}, {"mib": 64, "kind": "sleepy"}, {"mib": 64, "operation_id": "1"}):
            self.assertRaises(exceptions.BadRequest, client.delegate_host, name, **body)
        for body in ({}, {"mib": 0}, {"mib": 64, "seconds": -1}):
            self.assertRaises(exceptions.BadRequest, client.reclaim_host, name, **body)
        self.assertRaises(exceptions.NotFound, client.delegate_host, self.unknown_uuid(), mib=64)
        self.assertRaises(exceptions.NotFound, client.reclaim_host, self.unknown_uuid(), mib=64)
