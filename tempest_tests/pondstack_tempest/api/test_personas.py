"""Every route as every persona: who gets an answer, who is refused."""

from typing import Any, NamedTuple

from oslo_serialization import jsonutils
from tempest.lib import decorators, exceptions

from pondstack_tempest.base import ADMIN, MEMBER, OTHER, READER, SYSTEM_READER, MemoryTest

EVERYBODY = frozenset((ADMIN, SYSTEM_READER, MEMBER, READER, OTHER))
RACK = frozenset((ADMIN, SYSTEM_READER))


class Route(NamedTuple):
    """A route, who may use it, and a body for a change."""

    method: str
    path: str
    may: frozenset[str]
    body: dict[str, Any] | None = None


ROUTES = (
    Route("GET", "/", EVERYBODY),
    Route("GET", "/openapi.json", EVERYBODY),
    Route("GET", "/pools", RACK),
    Route("GET", "/pools/{pool}", RACK),
    Route("GET", "/pools/{pool}/slices", RACK),
    Route("GET", "/pools/{pool}/slices/{index}", RACK),
    Route("GET", "/hosts", RACK),
    Route("GET", "/hosts/{name}", RACK),
    Route("PUT", "/hosts/{name}", frozenset((ADMIN,)), {"enabled": False, "generation": 0}),
    Route("POST", "/hosts/{name}/fence", frozenset((ADMIN,)), {"reason": "it burns"}),
    Route("POST", "/hosts/{name}/unfence", frozenset((ADMIN,)), {}),
    Route("POST", "/hosts/{name}/delegate", frozenset((ADMIN,)), {"mib": 0}),
    Route("POST", "/hosts/{name}/reclaim", frozenset((ADMIN,)), {"mib": 1}),
    Route("POST", "/hosts/{name}/suspend", frozenset((ADMIN,)), {"mib": 0}),
    Route("POST", "/hosts/{name}/wake", frozenset((ADMIN,)), {}),
    Route("PUT", "/hosts/{name}/slices", frozenset((ADMIN,)), {"purpose": "base", "count": 0, "generation": 0}),
    Route("PUT", "/hosts/{name}/tiering", frozenset((ADMIN,)), {"on": False, "generation": 0}),
    Route("DELETE", "/hosts/{name}", frozenset((ADMIN,)), {}),
    Route("DELETE", "/pools/{pool}", frozenset((ADMIN,)), {}),
    Route("GET", "/lenders", RACK),
    Route("GET", "/lenders/{host}", RACK),
    Route("GET", "/lenders/{host}/buffers", RACK),
    Route("GET", "/lenders/{host}/buffers/{index}", RACK),
    Route("GET", "/loans", EVERYBODY),
    Route("GET", "/loans/{loan}", EVERYBODY),
    Route("GET", "/shares", EVERYBODY),
    Route("GET", "/shares/{consumer}", EVERYBODY),
    Route("GET", "/agents", RACK),
    Route("GET", "/agents/{host}", RACK),
    Route("GET", "/allocations", EVERYBODY),
    Route("GET", "/allocations/{uuid}", EVERYBODY),
    Route("POST", "/allocations/{consumer}/mitigate", frozenset((ADMIN,)), {}),
    Route("POST", "/allocations/{consumer}/abort", frozenset((ADMIN,)), {}),
    Route("GET", "/mitigations", EVERYBODY),
    Route("GET", "/qos", RACK),
    Route("GET", "/qos/report", RACK),
    Route("GET", "/qos/{consumer}", EVERYBODY),
    Route(
        "PUT",
        "/performance/{consumer}",
        frozenset((ADMIN, MEMBER, OTHER)),
        {"metric": "p99_ms", "value": 1.0, "higher_is_better": False},
    ),
    Route("POST", "/audits", frozenset((ADMIN,)), {"repair": False}),
    Route("GET", "/leader", RACK),
    Route("GET", "/controllers", RACK),
    Route("POST", "/controllers/failover", frozenset((ADMIN,)), {}),
    Route("GET", "/controllers/{name}", RACK),
    Route("GET", "/telemetry/{consumer}", RACK),
    Route("GET", "/splits", EVERYBODY),
    Route("GET", "/splits/{consumer}", EVERYBODY),
    Route("GET", "/history/{consumer}", EVERYBODY),
    Route("GET", "/models", RACK),
    Route("GET", "/models/{version}", RACK),
    Route("POST", "/models/{version}/promote", frozenset((ADMIN,)), {}),
    Route("POST", "/models/{version}/rollback", frozenset((ADMIN,)), {}),
    Route("GET", "/projects", RACK),
    Route("GET", "/projects/{project_id}", RACK),
    Route("PUT", "/projects/{project_id}", frozenset((ADMIN,)), {"max_pool_percent": 100}),
    Route("GET", "/plans", RACK),
    Route("POST", "/plans", frozenset((ADMIN,)), {}),
    Route("GET", "/plans/{plan}", RACK),
    Route("POST", "/plans/{plan}/apply", frozenset((ADMIN,)), {}),
    Route("POST", "/plans/{plan}/cancel", frozenset((ADMIN,)), {}),
    Route("POST", "/hosts/{name}/drain", frozenset((ADMIN,)), {}),
    Route("POST", "/hosts/{name}/restore", frozenset((ADMIN,)), {}),
    Route("GET", "/planner-jobs", RACK),
    Route("POST", "/planner-jobs", frozenset((ADMIN,)), {}),
    Route("GET", "/planner-jobs/{job}", RACK),
    Route("DELETE", "/planner-jobs/{job}", frozenset((ADMIN,))),
    Route("POST", "/planner-jobs/{job}/cancel", frozenset((ADMIN,)), {}),
    Route("GET", "/planner-jobs/{job}/report", RACK),
    Route("GET", "/consolidation", RACK),
    Route("PUT", "/consolidation", frozenset((ADMIN,)), {"frozen": True}),
    Route("PUT", "/consolidation/limits", frozenset((ADMIN,)), {"least_awake": 1}),
)


class PersonasTest(MemoryTest):
    """The default policies: the operator, who reads the whole rack, and who reads their own project."""

    min_microversion = "1.23"
    credentials = [ADMIN, SYSTEM_READER, MEMBER, READER, OTHER]

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("b77b7a54-44f7-4b7d-8f3a-2f3b0e7c1a38")
    def test_the_operator_reads_all(self) -> None:
        """An administrator is refused nothing that only reads."""
        self._walk(ADMIN)

    @decorators.idempotent_id("6d3a5a8c-9df0-4c85-8a1a-1c1d7e2f1a39")
    def test_a_reader_of_the_system_reads_all_and_changes_nothing(self) -> None:
        """403 for each change."""
        self._walk(SYSTEM_READER)

    @decorators.idempotent_id("18f3d1d2-6cdd-4d0b-a5a2-5e3b8c9b1a40")
    def test_a_member_of_a_project_sees_allocations_only(self) -> None:
        """403 for all that is the rack's, and for each change."""
        self._walk(MEMBER)

    @decorators.idempotent_id("d94f0c76-0cf3-48b8-9a39-8d7a4f6d1a41")
    def test_a_reader_of_a_project_sees_allocations_only(self) -> None:
        """As a member."""
        self._walk(READER)

    @decorators.idempotent_id("4c9e1b0e-3e4f-4b4c-8f0e-6d0f3d8f1a42")
    def test_a_member_of_another_project_sees_allocations_only(self) -> None:
        """As a member."""
        self._walk(OTHER)

    def _walk(self, persona: str) -> None:
        client = self.memory("Root", persona)
        for route in ROUTES:
            refused = self._refused(client, route) if persona not in route.may or route.body is None else False
            self.assertEqual(persona not in route.may, refused, f"{route.method} {route.path} as {persona}")

    def _refused(self, client: Any, route: Route) -> bool:
        unknown = self.unknown_uuid()
        # Nothing that is there: who may change things is not tried, and nobody else gets that far.
        names = dict.fromkeys(
            ("pool", "name", "host", "uuid", "loan", "consumer", "version", "project_id", "plan", "job"), unknown
        )
        path = route.path.format(index=0, **names)
        body = None if route.body is None else jsonutils.dumps(route.body)
        try:
            client.request(route.method, path, body=body)
        except exceptions.Forbidden:
            return True
        except exceptions.NotFound:
            return False
        return False
