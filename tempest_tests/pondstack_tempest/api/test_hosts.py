"""Hosts and their agents: list, show, enable, generations, fences that are refused."""

from tempest.lib import decorators, exceptions

from pondstack_tempest.base import MemoryTest


class HostsTest(MemoryTest):
    """GET and PUT of /hosts."""

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("b2a3c8ce-5b7e-4e3f-9c0f-6f6f6d7d1a09")
    def test_a_host_is_listed_and_shown(self) -> None:
        """A host that is up reaches pools, which name it too."""
        host = self.a_host()
        shown = self.memory("Hosts").show_host(host["name"])
        self.assertEqual(host["provider_uuid"], shown["provider_uuid"])
        for pool in shown["pools"]:
            self.assertIn(host["name"], self.memory("Pools").show_pool(pool)["hosts"])

    @decorators.idempotent_id("e6f4a1fb-6ba0-4d45-b0ea-7d1c3c1c5a10")
    def test_pages_follow_the_marker(self) -> None:
        """Pages of one host each give all hosts once, in order."""
        self.assert_pages("Hosts", "list_hosts", "hosts", "name")

    @decorators.attr(type=["negative", "smoke"])
    @decorators.idempotent_id("9d1dfc9c-92c5-4ec9-8b57-2d1f3b9b7a11")
    def test_a_change_of_another_generation_is_a_conflict(self) -> None:
        """409, and nothing is changed."""
        client, host = self.memory("Hosts"), self.a_host()
        late = {"enabled": not host["enabled"], "generation": host["generation"] + 1}
        error = self.assert_status(409, client.update_host, host["name"], **late)
        self.assertEqual("pondstack.generation_conflict", error["code"])
        after = client.show_host(host["name"])
        self.assertEqual((host["generation"], host["enabled"]), (after["generation"], after["enabled"]))

    @decorators.attr(type="negative")
    @decorators.idempotent_id("0f8d9f8a-8f5d-4f60-8d67-6a3c7d0e3a12")
    def test_malformed_changes_are_refused(self) -> None:
        """400: without a generation, with an unknown key, with a reason for enabling."""
        client, host = self.memory("Hosts"), self.a_host()
        right = {"enabled": True, "generation": host["generation"]}
        for body in ({"enabled": True}, {**right, "colour": "blue"}, {**right, "disabled_reason": "it burns"}):
            self.assertRaises(exceptions.BadRequest, client.update_host, host["name"], **body)
        self.assertEqual(host["generation"], client.show_host(host["name"])["generation"])

    @decorators.attr(type="negative")
    @decorators.idempotent_id("7b6b4c3e-4c6d-4b7b-a1c7-9a9a3d4e1a13")
    def test_an_unknown_host_is_not_found(self) -> None:
        """404, to read and to change."""
        client, name = self.memory("Hosts"), self.unknown_uuid()
        self.assertRaises(exceptions.NotFound, client.show_host, name)
        self.assertRaises(exceptions.NotFound, client.update_host, name, enabled=True, generation=0)


@decorators.serial
class HostsChangedTest(MemoryTest):
    """PUT /hosts/{name} of a host that tests may break."""

    @decorators.idempotent_id("1b6f6a5e-8c40-4a7a-9a0f-7c7d0f2b1a43")
    def test_a_host_is_disabled_and_enabled(self) -> None:
        """Each change grows the generation and shows in the answer; the one of before is a conflict."""
        client, name = self.memory("Hosts"), self.an_expendable_host()
        before = client.show_host(name)
        self.assertTrue(before["enabled"], f"{name} is disabled: enable it before the test")
        reason = {"disabled_reason": "a test of Tempest"}
        off = client.update_host(name, enabled=False, generation=before["generation"], **reason)
        self.addCleanup(self._enable, name)
        self.assertEqual((False, reason["disabled_reason"]), (off["enabled"], off["disabled_reason"]))
        self.assertGreater(off["generation"], before["generation"])
        self.assertRaises(exceptions.Conflict, client.update_host, name, enabled=True, generation=before["generation"])
        on = client.update_host(name, enabled=True, generation=off["generation"])
        self.assertEqual((True, ""), (on["enabled"], on["disabled_reason"]))

    def _enable(self, name: str) -> None:
        client = self.memory("Hosts")
        host = client.show_host(name)
        if not host["enabled"]:
            client.update_host(name, enabled=True, generation=host["generation"])


class FencesTest(MemoryTest):
    """POST /hosts/{name}/fence and /unfence."""

    min_microversion = "1.1"

    @decorators.attr(type="negative")
    @decorators.idempotent_id("6a0f1b7b-2a0c-4d0f-8d2c-0e2f4b8d1a14")
    def test_a_host_that_reports_is_not_fenced(self) -> None:
        """409: it would take memory from running guests."""
        client, host = self.memory("Hosts"), self.a_host()
        self.assertRaises(exceptions.Conflict, client.fence_host, host["name"], reason="a test of its refusal")
        self.assertFalse(client.show_host(host["name"])["fenced"])

    @decorators.attr(type=["negative", "smoke"])
    @decorators.idempotent_id("52e0ab92-5a93-4f37-bb20-4c2cb1a71a15")
    def test_malformed_fences_are_refused(self) -> None:
        """400 without a reason, 404 for an unknown host."""
        client, host = self.memory("Hosts"), self.a_host()
        self.assertRaises(exceptions.BadRequest, client.fence_host, host["name"])
        self.assertRaises(exceptions.BadRequest, client.fence_host, host["name"], reason="")
        self.assertRaises(exceptions.NotFound, client.fence_host, self.unknown_uuid(), reason="it burns")
        self.assertRaises(exceptions.NotFound, client.unfence_host, self.unknown_uuid())


class FencedGenerationTest(MemoryTest):
    """POST /hosts/{name}/fence since it says which generation of the host is dead."""

    min_microversion = "1.17"

    @decorators.attr(type="negative")
    @decorators.idempotent_id("c61b0e57-4d0f-4b1c-9c5d-3f0a6e2d1a45")
    def test_a_fence_of_another_generation_is_refused(self) -> None:
        """409: the request is late, and the host is another one by now; 400 without a generation."""
        client, host = self.memory("Hosts"), self.a_host()
        late = {"reason": "a test of its refusal", "force": True, "generation": host["generation"] + 1}
        self.assertRaises(exceptions.Conflict, client.fence_host, host["name"], **late)
        self.assertRaises(exceptions.BadRequest, client.fence_host, host["name"], reason="a test", force=True)
        self.assertFalse(client.show_host(host["name"])["fenced"])


class RemovalTest(MemoryTest):
    """DELETE /hosts/{name}."""

    min_microversion = "1.7"

    @decorators.attr(type="negative")
    @decorators.idempotent_id("0c6d2f4e-7b1a-4e58-9a37-5d8e1f2b1a44")
    def test_a_host_that_reports_is_not_removed(self) -> None:
        """409 with what is left; 404 for an unknown one."""
        client, host = self.memory("Hosts"), self.a_host()
        self.assertRaises(exceptions.Conflict, client.delete_host, host["name"])
        self.assertTrue(client.show_host(host["name"])["up"])
        self.assertRaises(exceptions.NotFound, client.delete_host, self.unknown_uuid())


class AgentsTest(MemoryTest):
    """GET /agents and /agents/{host}."""

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("f4a7d9cc-02d2-46f7-b3d2-55d7e5b61a16")
    def test_an_agent_is_listed_and_shown(self) -> None:
        """The agent of a host that is up was heard of, and obeys an epoch."""
        name = self.a_host()["name"]
        shown = self.memory("Agents").show_agent(name)
        self.assertTrue(shown["up"])
        self.assertGreaterEqual(shown["epoch"], 1)
        self.assertIn(name, [agent["host"] for agent in self.memory("Agents").list_agents(limit=1000)["agents"]])

    @decorators.idempotent_id("ae31ac3c-3b34-4c8d-8d07-1d7f1c3b1a17")
    def test_pages_follow_the_marker(self) -> None:
        """Pages of one agent each give all agents once, in order."""
        self.assert_pages("Agents", "list_agents", "agents", "host")

    @decorators.attr(type="negative")
    @decorators.idempotent_id("0a1d9b3b-c1d8-4cc1-8b6c-6b7b9d2f1a18")
    def test_an_unknown_agent_is_not_found(self) -> None:
        """404."""
        self.assertRaises(exceptions.NotFound, self.memory("Agents").show_agent, self.unknown_uuid())
