"""Each route has its policy, its schemas, and answers that fit them."""

import jsonschema
import pytest
from oslo_policy import policy

from pondstack_api import openapi, policies
from pondstack_api.microversion import VERSIONS
from pondstack_api.routes import PUBLIC_PATHS, ROUTES
from tests.fixtures import sample_jobs, sample_models, sample_plans, sample_rack

from .conftest import error_of

ALL = [(method, path, route) for path, methods in ROUTES.items() for method, route in methods.items()]
RULES = {rule.name: rule for rule in policies.list_rules()}


def of_routes(condition):
    """Give a test each route for which a condition holds, under its name."""
    chosen = [(method, path, route) for method, path, route in ALL if condition(path, route)]
    return pytest.mark.parametrize(
        ("method", "path", "route"), chosen, ids=[f"{method} {path}" for method, path, _ in chosen]
    )


def test_only_what_describes_the_api_is_public():
    assert {"/", "/openapi.json"} == PUBLIC_PATHS


@of_routes(lambda path, _: path not in PUBLIC_PATHS)
def test_policy(method, path, route):
    rule = RULES[route.policy]
    assert isinstance(rule, policy.DocumentedRuleDefault)
    assert {"method": method, "path": path} in rule.operations


def test_every_rule_is_of_a_route():
    routes = {(method, path) for method, path, _ in ALL}
    for rule in RULES.values():
        if isinstance(rule, policy.DocumentedRuleDefault):
            assert {(operation["method"], operation["path"]) for operation in rule.operations} <= routes


@of_routes(lambda *_: True)
def test_schemas_are_schemas(method, path, route):
    for schema in (route.response, route.query, route.body or {}):
        jsonschema.Draft202012Validator.check_schema(schema)
    assert route.query["additionalProperties"] is False
    assert (route.body is not None) == (method in {"PUT", "POST", "PATCH"})
    if route.body is not None:
        assert route.body["additionalProperties"] is False
    assert route.handler.__doc__, path


@of_routes(lambda _, route: bool(route.response))
def test_answers_fit_their_schema(api, call, method, path, route):
    name = "controller-1" if path.startswith("/controllers") else "host-1"
    fence = {"reason": "it burns", "force": True, "generation": 0}
    model = sample_models.CANDIDATE if path.endswith("/promote") else sample_models.RUNNING
    uuids = {"uuid": api.allocations[0], "consumer": sample_rack.CONSUMERS[0], "version": model}
    uuids |= {"project_id": sample_rack.BLUE, "loan": sample_rack.LOAN, "plan": sample_plans.PROPOSED}
    uuids["job"] = sample_jobs.WAITING if path.endswith("/cancel") else sample_jobs.ENDED
    if path.endswith("/abort"):
        uuids["consumer"] = sample_rack.CONSUMERS[1]
    name = "host-2" if path.endswith(("/delegate", "/reclaim")) else name
    host = "host-1" if path.startswith("/lenders") else "host-3"
    concrete = path.format(pool="pool0", index=4, name=name, host=host, **uuids)
    bodies = {"/hosts/{name}": {"enabled": False, "generation": 0}, "/hosts/{name}/fence": fence}
    bodies |= {"/hosts/{name}/delegate": {"mib": 512}, "/hosts/{name}/reclaim": {"mib": 64, "seconds": 0.5}}
    bodies["/performance/{consumer}"] = {"metric": "p99_ms", "value": 1.5, "higher_is_better": False}
    bodies["/hosts/{name}/tiering"] = {"on": None, "generation": 0}
    bodies["/hosts/{name}/slices"] = {"purpose": "tier", "count": 1, "generation": 0}
    bodies["/consolidation"] = {"frozen": True}
    bodies["/consolidation/limits"] = {"least_awake": 1}
    bodies["/projects/{project_id}"] = {"default_policy": None, "max_pool_percent": 0}
    if path.endswith("/wake"):
        call("POST", f"/hosts/{name}/suspend", json={})
    response = call(method, concrete, json=bodies.get(path, {}) if route.body else None)
    assert response.status_code == route.status
    jsonschema.validate(response.json(), route.response)


@of_routes(lambda _, route: not route.response)
def test_an_answer_without_a_schema_has_no_body(api, call, method, path, route):
    with api.database.engine.begin() as connection:
        for table in ("buffers", "allocations", "slices"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
        connection.exec_driver_sql("UPDATE hosts SET last_heartbeat = 0")
    response = call(method, path.format(pool="pool0", name="host-1", job=sample_jobs.ENDED))
    assert (response.status_code, route.status, response.text) == (204, 204, "")
    assert "content-type" not in response.headers
    assert call(method, path.format(pool="pool0", name="host-1", job=sample_jobs.ENDED)).status_code == 404


@of_routes(lambda _, route: route.since > (1, 0))
def test_before_its_microversion_a_route_does_not_exist(api, call, method, path, route):
    body = {} if route.body else None
    concrete = path.format(
        name="controller-1",
        pool="pool0",
        consumer=sample_rack.CONSUMERS[0],
        host="host-1",
        index=0,
        version=sample_models.RUNNING,
        project_id=sample_rack.BLUE,
        loan=sample_rack.LOAN,
        plan=sample_plans.PROPOSED,
        job=sample_jobs.ENDED,
    )
    versions = list(VERSIONS)
    for header in ("1.0", versions[versions.index(f"{route.since[0]}.{route.since[1]}") - 1]):
        response = call(method, concrete, version=header, json=body)
        assert response.status_code == 404
        assert error_of(response)["code"] == "pondstack.route_not_found"
        assert f"memory {route.since[0]}.{route.since[1]}" in error_of(response)["detail"]
    assert api.controller.failovers == []


def test_lists_have_pages():
    for _, path, route in ALL:
        items = [name for name, schema in route.response.get("properties", {}).items() if schema.get("type") == "array"]
        if path.rpartition("/")[2] in items:
            assert {"limit", "marker"} <= set(route.query["properties"]), path


def test_the_openapi_document_has_every_route(call):
    document = call("GET", "/openapi.json").json()
    found = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert found == {(method, path) for method, path, _ in ALL}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            names = {item["name"] for item in operation["parameters"] if item["in"] == "path"}
            assert names == {part[1:-1] for part in path.split("/") if part.startswith("{")}
    for method, path, route in ALL:
        operation = document["paths"][path][method.lower()]
        assert set(operation["responses"]) == {str(route.status), *map(str, openapi.errors_of(path, route))}
        assert operation.get("x-since", "1.0") == ".".join(map(str, route.since))
    identifiers = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(identifiers) == len(set(identifiers))


def test_the_openapi_document_names_each_error_that_a_route_answers(call):
    paths = call("GET", "/openapi.json").json()["paths"]
    assert set(paths["/"]["get"]["responses"]) == {"200", "400", "406", "500"}
    shown = {"200", "400", "401", "403", "404", "406", "500", "503"}
    assert set(paths["/hosts/{name}"]["get"]["responses"]) == shown
    assert set(paths["/hosts/{name}"]["put"]["responses"]) == shown | {"409", "413", "415"}
    assert "409" in paths["/audits"]["post"]["responses"]


def test_the_openapi_document_has_the_form_of_a_consumer_and_of_a_change(call):
    paths = call("GET", "/openapi.json").json()["paths"]
    (consumer,) = (p for p in paths["/telemetry/{consumer}"]["get"]["parameters"] if p["in"] == "path")
    assert not jsonschema.Draft202012Validator(consumer["schema"]).is_valid("0")
    change = paths["/hosts/{name}"]["put"]["requestBody"]["content"]["application/json"]["schema"]
    validator = jsonschema.Draft202012Validator(change)
    assert validator.is_valid({"enabled": False, "disabled_reason": "disk", "generation": 0})
    assert not validator.is_valid({"enabled": True, "disabled_reason": "disk", "generation": 0})


@pytest.mark.parametrize("route", [route for _, _, route in ALL], ids=lambda route: route.handler.__name__)
def test_each_text_of_a_request_has_a_form(route):
    """So that none brings control characters into logs and terminals, or what a database cannot keep."""
    for name, schema in {**route.query["properties"], **(route.body or {}).get("properties", {})}.items():
        for part in schema.get("anyOf", [schema]):
            assert part["type"] != "string" or "enum" in part or "pattern" in part, name
