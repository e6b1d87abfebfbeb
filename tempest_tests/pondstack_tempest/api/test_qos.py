"""Mitigations and the QoS monitor: lists, and what is refused. A mitigation itself is a scenario."""

from tempest.lib import decorators, exceptions

from pondstack_tempest.base import MEMBER, MemoryTest


class QosTest(MemoryTest):
    """GET /qos, /qos/report, /qos/{consumer}, /mitigations; PUT /performance/{consumer}; POST mitigate and abort."""

    min_microversion = "1.16"
    credentials = [*MemoryTest.credentials, MEMBER]

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("5a1d7c2e-3f64-4b8a-9d0c-8e7b6a5f1a48")
    def test_lists_are_there(self) -> None:
        """Decisions, mitigations, the report; pages and filters."""
        qos = self.memory("Qos")
        self.assertLessEqual(len(qos.list_decisions(limit=1)["decisions"]), 1)
        for decision in qos.list_decisions(action="mitigate")["decisions"]:
            self.assertEqual("mitigate", decision["action"])
        self.assertEqual(95.0, qos.show_report()["level_percent"])
        for found in self.memory("Mitigations").list_mitigations(open="true")["mitigations"]:
            self.assertIsNone(found["ended_at"])

    @decorators.attr(type=["negative", "smoke"])
    @decorators.idempotent_id("c3e8f9a0-7b2d-4c6e-8f1a-0d9e8c7b1a49")
    def test_what_is_unknown_or_not_allowed_is_refused(self) -> None:
        """404 for what is not there, 400 for what is malformed, 403 for a member."""
        qos, mitigations, unknown = self.memory("Qos"), self.memory("Mitigations"), self.unknown_uuid()
        self.assertRaises(exceptions.NotFound, qos.show_qos, unknown)
        self.assertRaises(exceptions.NotFound, mitigations.mitigate, unknown)
        self.assertRaises(exceptions.NotFound, mitigations.abort, unknown)
        self.assertRaises(exceptions.BadRequest, mitigations.mitigate, unknown, method="swap")
        self.assertRaises(exceptions.BadRequest, qos.list_decisions, action="run")
        figure = {"metric": "p99_ms", "value": 1.0, "higher_is_better": False}
        self.assertRaises(exceptions.NotFound, self.memory("Qos", MEMBER).record_performance, unknown, **figure)
        self.assertRaises(exceptions.Forbidden, self.memory("Qos", MEMBER).list_decisions)
        self.assertRaises(exceptions.Forbidden, self.memory("Mitigations", MEMBER).mitigate, unknown)
