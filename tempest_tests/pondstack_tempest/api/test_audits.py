"""Audits and telemetry: what they answer, what is refused."""

from tempest.lib import decorators, exceptions

from pondstack_tempest.base import MemoryTest


class AuditsTest(MemoryTest):
    """POST /audits."""

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("c7a0d6a5-54f3-4d36-a1b6-9f5f3b8d1a27")
    def test_an_audit_tells_whether_all_agree(self) -> None:
        """It is clean exactly when it found no fault (info: a server starts, moves or is off), and says its totals."""
        audit = self.memory("Audits").create_audit()
        faults = [finding for finding in audit["findings"] if finding["severity"] != "info"]
        self.assertEqual(audit["clean"], not faults)
        self.assertFalse(audit["repair"])
        self.assertGreater(len(audit["totals"]), 0)

    @decorators.attr(type="negative")
    @decorators.idempotent_id("8f0a3b52-8a3e-4b86-9a3d-1f0d5e9a1a28")
    def test_malformed_audits_are_refused(self) -> None:
        """400."""
        client = self.memory("Audits")
        self.assertRaises(exceptions.BadRequest, client.create_audit, repair="perhaps")
        self.assertRaises(exceptions.BadRequest, client.create_audit, colour="blue")


class TelemetryTest(MemoryTest):
    """GET /telemetry/{consumer}."""

    min_microversion = "1.3"

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("4d7bb7e4-3c43-4ac2-8ad2-4bd4b3e01a29")
    def test_nothing_is_told_of_a_guest_that_is_not_there(self) -> None:
        """No samples, and no error: what was never measured looks the same."""
        unknown = self.unknown_uuid()
        told = self.memory("Telemetry").show_telemetry(unknown, history="samples", limit=5)
        self.assertEqual((unknown, []), (told["consumer_uuid"], told["samples"]))

    @decorators.attr(type="negative")
    @decorators.idempotent_id("6c2d45b4-5a5c-4a1d-b7f7-5d7b8e7f1a30")
    def test_malformed_requests_are_refused(self) -> None:
        """400 for a name instead of a UUID, for an unknown history."""
        client = self.memory("Telemetry")
        self.assertRaises(exceptions.BadRequest, client.show_telemetry, "my-server")
        self.assertRaises(exceptions.BadRequest, client.show_telemetry, self.unknown_uuid(), history="all")
