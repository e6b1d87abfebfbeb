"""What the API says about itself: versions, the OpenAPI document, microversions, errors of HTTP."""

from typing import Any

from oslo_serialization import jsonutils
from tempest import config
from tempest.lib import decorators, exceptions
from tempest.lib.common import api_version_request

from pondstack_tempest.base import MemoryTest
from pondstack_tempest.services.base import HEADER

CONF = config.CONF
JSON = {"Accept": "application/json", "Content-Type": "application/json"}


class RootTest(MemoryTest):
    """GET / and /openapi.json: open to everybody."""

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("2d4b8c1c-11a0-4f63-8b8f-4f1a4d5e1a31")
    def test_versions_are_told_without_a_token(self) -> None:
        """They include those that the configuration tests with."""
        response, text = self.memory("Root").raw("GET", "/", JSON)
        self.assertEqual(200, response.status)
        self.assertEqual(self.memory("Root").show_versions()["versions"], jsonutils.loads(text)["versions"])
        lowest, highest = _range(self.memory("Root"))
        self.assertLessEqual(lowest, _version(CONF.pondstack.min_microversion))
        if CONF.pondstack.max_microversion != "latest":
            self.assertGreaterEqual(highest, _version(CONF.pondstack.max_microversion))

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("a4f5c8d3-9c74-41d0-9a4b-8b5d6e8c1a32")
    def test_the_api_describes_itself(self) -> None:
        """The OpenAPI document has the paths that this plugin's clients use."""
        document = self.memory("Root").show_openapi()
        for path in ("/pools", "/hosts", "/agents", "/allocations", "/audits", "/leader"):
            self.assertIn(path, document["paths"])

    @decorators.attr(type="negative")
    @decorators.idempotent_id("e3fb6b6c-3cb5-4b1b-9d37-9dc7a6a01a33")
    def test_without_a_valid_token_nothing_else_is_told(self) -> None:
        """401 without a token, and with one that is none."""
        for token in ({}, {"X-Auth-Token": self.unknown_uuid()}):
            response, _ = self.memory("Root").raw("GET", "/pools", {**JSON, **token})
            self.assertEqual(401, response.status)

    @decorators.attr(type="negative")
    @decorators.idempotent_id("1a2c3b7d-5d7c-4a5d-9a7c-1c6b2d3f1a34")
    def test_unknown_paths_and_methods_are_refused(self) -> None:
        """404 names the document of all paths, 405 the methods that there are, 415 wants JSON."""
        client = self.memory("Root")
        error = self.assert_status(404, client.read, "/cupboards")
        self.assertEqual("pondstack.route_not_found", error["code"])
        token = {"X-Auth-Token": client.token}
        response, _ = client.raw("DELETE", "/pools", {**JSON, **token})
        self.assertEqual((405, "GET"), (response.status, response["allow"]))
        response, _ = client.raw("POST", "/audits", {"Content-Type": "text/plain", **token}, "{}")
        self.assertEqual(415, response.status)


class MicroversionsTest(MemoryTest):
    """The header OpenStack-API-Version."""

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("7f3c1a94-7f4a-45a5-8b60-3d3e9d5c1a35")
    def test_each_answer_tells_its_microversion(self) -> None:
        """The oldest without a header; the one that was asked for; the newest for `latest`."""
        lowest, highest = (version.get_string() for version in _range(self.memory("Root")))
        for asked, told in ((None, lowest), (lowest, lowest), (highest, highest), ("latest", highest)):
            client = self.memory("Pools")
            client.microversion = asked
            answer = client.list_pools().response
            self.assertEqual(f"{client.service} {told}", answer[HEADER.lower()])
            self.assertIn(HEADER.lower(), answer["vary"].lower())

    @decorators.attr(type="negative")
    @decorators.idempotent_id("5b0b8f6d-4c26-4c39-8c1e-7b2f9d9d1a36")
    def test_a_microversion_that_is_too_high_is_refused(self) -> None:
        """406 says which ones there are; one that is malformed is a 400."""
        highest = _range(self.memory("Root"))[1]
        client = self.memory("Pools")
        client.microversion = f"{highest.ver_major}.{highest.ver_minor + 1}"
        error = self.assert_status(406, client.list_pools)
        self.assertEqual(highest.get_string(), error["max_version"])
        client.microversion = "newest"
        self.assertRaises(exceptions.BadRequest, client.list_pools)

    @decorators.attr(type="negative")
    @decorators.idempotent_id("0d9e1e0a-86ae-4c0d-9b4a-5d4bb2cf1a37")
    def test_paths_of_later_microversions_do_not_exist_before(self) -> None:
        """404 with the microversion that they came with; fields of later ones are not shown."""
        later = (("Controllers", "list_controllers", "1.0"), ("Lenders", "list_lenders", "1.4"))
        highest = _range(self.memory("Root"))[1]
        for noun, method, asked in later:
            if _version(asked) < highest:
                client = self.memory(noun)
                client.microversion = asked
                self.assert_status(404, getattr(client, method))
        client = self.memory("Hosts")
        client.microversion = "1.0"
        self.assertNotIn("fenced", client.list_hosts(limit=1)["hosts"][0])


def _version(text: str) -> Any:
    return api_version_request.APIVersionRequest(text)


def _range(client: Any) -> tuple[Any, Any]:
    (version,) = client.show_versions()["versions"]
    return _version(version["min_version"]), _version(version["max_version"])
