"""Prediction models: list, show, and what is refused. Nothing here changes which one serves."""

from tempest.lib import decorators, exceptions

from pondstack_tempest.base import MemoryTest


class ModelsTest(MemoryTest):
    """GET /models, /models/{version}; POST .../promote and .../rollback as far as they are refused."""

    min_microversion = "1.13"

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("0c7f6f0e-9a41-4a7b-8a52-6f1d2b3c1a44")
    def test_models_are_listed_and_shown(self) -> None:
        """At most one of a kind runs; each is shown as it is listed, with its manifest."""
        client = self.memory("Models")
        listed = client.list_models()["models"]
        running = [model["kind"] for model in listed if model["state"] == "running"]
        self.assertEqual(len(running), len(set(running)))
        for model in listed[:3]:
            shown = client.show_model(model["version"])
            self.assertEqual(model["sha256"], shown["sha256"])
            self.assertEqual(model["kind"], shown["manifest"]["kind"])

    @decorators.attr(type=["negative", "smoke"])
    @decorators.idempotent_id("5b0f2a0d-37f5-4c0a-9d8e-0d6c7a9e1a45")
    def test_what_is_unknown_or_malformed_is_refused(self) -> None:
        """404 for an unknown model and an unknown marker, 400 for an unknown parameter or key."""
        client = self.memory("Models")
        unknown = self.unknown_uuid()
        self.assertRaises(exceptions.NotFound, client.show_model, unknown)
        self.assertRaises(exceptions.NotFound, client.list_models, marker=unknown)
        self.assertRaises(exceptions.BadRequest, client.list_models, colour="blue")
        for change in (client.promote_model, client.rollback_model):
            self.assertRaises(exceptions.NotFound, change, unknown)
            self.assertRaises(exceptions.BadRequest, change, unknown, colour="blue")
