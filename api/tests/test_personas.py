"""Walks every route as each persona: who gets an answer, who is refused."""

import pytest

from pondstack_api.routes import ROUTES
from tests.fixtures import sample_jobs, sample_models, sample_plans, sample_rack

from .conftest import error_of

MODEL = sample_models.CANDIDATE
BLUE, CONSUMER = sample_rack.BLUE, sample_rack.CONSUMERS[0]
SYSTEM = {"OpenStack-System-Scope": "all"}
PERSONAS = {
    "admin": {"X-Auth-Token": "root:ops", "X-Roles": "admin,manager,member,reader"},
    "service": {"X-Auth-Token": "nova:service", "X-Roles": "service"},
    "system-reader": {"X-Auth-Token": "auditor", "X-Roles": "reader", **SYSTEM},
    "system-member": {"X-Auth-Token": "auditor", "X-Roles": "member,reader", **SYSTEM},
    "manager": {"X-Auth-Token": f"boss:{BLUE}", "X-Roles": "manager,member,reader"},
    "member": {"X-Auth-Token": f"joe:{BLUE}", "X-Roles": "member,reader"},
    "reader": {"X-Auth-Token": f"eve:{BLUE}", "X-Roles": "reader"},
    "no-role": {"X-Auth-Token": f"mallory:{BLUE}", "X-Roles": "gardener"},
    "other-project": {"X-Auth-Token": "zoe:0123456789abcdef0123456789abcdef", "X-Roles": "member,reader"},
    "no-token": {},
}

RACK = {"admin", "service", "system-reader", "system-member"}
PROJECT = {"manager", "member", "reader"}
EVERYBODY = set(PERSONAS)

ALLOWED = {
    ("GET", "/"): EVERYBODY,
    ("GET", "/openapi.json"): EVERYBODY,
    ("GET", "/pools"): RACK,
    ("GET", "/pools/{pool}"): RACK,
    ("GET", "/pools/{pool}/slices"): RACK,
    ("GET", "/pools/{pool}/slices/{index}"): RACK,
    ("GET", "/hosts"): RACK,
    ("GET", "/hosts/{name}"): RACK,
    ("PUT", "/hosts/{name}"): {"admin"},
    ("DELETE", "/hosts/{name}"): {"admin"},
    ("DELETE", "/pools/{pool}"): {"admin"},
    ("POST", "/hosts/{name}/fence"): {"admin"},
    ("POST", "/hosts/{name}/unfence"): {"admin"},
    ("POST", "/hosts/{name}/delegate"): {"admin"},
    ("POST", "/hosts/{name}/reclaim"): {"admin"},
    ("POST", "/hosts/{name}/suspend"): {"admin"},
    ("POST", "/hosts/{name}/wake"): {"admin"},
    ("PUT", "/hosts/{name}/slices"): {"admin"},
    ("PUT", "/hosts/{name}/tiering"): {"admin"},
    ("GET", "/lenders"): RACK,
    ("GET", "/lenders/{host}"): RACK,
    ("GET", "/lenders/{host}/buffers"): RACK,
    ("GET", "/lenders/{host}/buffers/{index}"): RACK,
    ("GET", "/loans"): RACK | PROJECT | {"other-project"},
    ("GET", "/loans/{loan}"): RACK | PROJECT,
    ("GET", "/shares"): RACK | PROJECT | {"other-project"},
    ("GET", "/shares/{consumer}"): RACK | PROJECT,
    ("GET", "/agents"): RACK,
    ("GET", "/agents/{host}"): RACK,
    ("GET", "/allocations"): RACK | PROJECT | {"other-project"},
    ("GET", "/allocations/{uuid}"): RACK | PROJECT,
    ("POST", "/allocations/{consumer}/mitigate"): {"admin"},
    ("POST", "/allocations/{consumer}/abort"): {"admin"},
    ("GET", "/mitigations"): RACK | PROJECT | {"other-project"},
    ("GET", "/qos"): RACK,
    ("GET", "/qos/report"): RACK,
    ("GET", "/qos/{consumer}"): RACK | PROJECT,
    ("PUT", "/performance/{consumer}"): {"admin", "manager", "member"},
    ("POST", "/audits"): {"admin", "service"},
    ("GET", "/leader"): RACK,
    ("GET", "/controllers"): RACK,
    ("GET", "/controllers/{name}"): RACK,
    ("POST", "/controllers/failover"): {"admin"},
    ("GET", "/telemetry/{consumer}"): RACK,
    ("GET", "/splits"): RACK | PROJECT | {"other-project"},
    ("GET", "/splits/{consumer}"): RACK | PROJECT,
    ("GET", "/models"): RACK,
    ("GET", "/models/{version}"): RACK,
    ("POST", "/models/{version}/promote"): {"admin"},
    ("POST", "/models/{version}/rollback"): {"admin"},
    ("GET", "/history/{consumer}"): RACK | PROJECT,
    ("GET", "/projects"): RACK,
    ("GET", "/projects/{project_id}"): RACK,
    ("PUT", "/projects/{project_id}"): {"admin"},
    ("GET", "/plans"): RACK,
    ("POST", "/plans"): {"admin"},
    ("GET", "/plans/{plan}"): RACK,
    ("POST", "/plans/{plan}/apply"): {"admin"},
    ("POST", "/plans/{plan}/cancel"): {"admin"},
    ("POST", "/hosts/{name}/drain"): {"admin"},
    ("POST", "/hosts/{name}/restore"): {"admin"},
    ("GET", "/planner-jobs"): RACK,
    ("POST", "/planner-jobs"): {"admin"},
    ("GET", "/planner-jobs/{job}"): RACK,
    ("DELETE", "/planner-jobs/{job}"): {"admin"},
    ("POST", "/planner-jobs/{job}/cancel"): {"admin"},
    ("GET", "/planner-jobs/{job}/report"): RACK,
    ("GET", "/consolidation"): RACK,
    ("PUT", "/consolidation"): {"admin"},
    ("PUT", "/consolidation/limits"): {"admin"},
}
HIDDEN = {
    "/allocations/{uuid}",
    "/loans/{loan}",
    "/shares/{consumer}",
    "/history/{consumer}",
    "/splits/{consumer}",
    "/qos/{consumer}",
    "/performance/{consumer}",
}
"""What of another project does not exist to a user."""
REFUSED = {
    # By then the host is disabled, so that it is not put to sleep, and nothing is to be woken.
    ("POST", "/hosts/{name}/suspend"): 409,
    ("POST", "/hosts/{name}/wake"): 409,
    ("DELETE", "/hosts/{name}"): 409,
    ("DELETE", "/pools/{pool}"): 409,
    ("PUT", "/hosts/{name}/slices"): 409,
    ("PUT", "/hosts/{name}/tiering"): 409,
}
"""What is allowed and not done: something is still there, or was changed before."""
BODIES = {
    ("PUT", "/hosts/{name}"): {"enabled": False, "generation": 0},
    ("POST", "/hosts/{name}/fence"): {"reason": "it burns", "generation": 0},
    ("POST", "/hosts/{name}/unfence"): {},
    ("POST", "/hosts/{name}/delegate"): {"mib": 512},
    ("POST", "/hosts/{name}/reclaim"): {"mib": 64},
    ("POST", "/hosts/{name}/suspend"): {},
    ("POST", "/hosts/{name}/wake"): {},
    ("PUT", "/hosts/{name}/slices"): {"purpose": "base", "count": 1, "generation": 0},
    ("PUT", "/hosts/{name}/tiering"): {"on": False, "generation": 0},
    ("POST", "/allocations/{consumer}/mitigate"): {},
    ("POST", "/allocations/{consumer}/abort"): {},
    ("PUT", "/performance/{consumer}"): {"metric": "p99_ms", "value": 1.5, "higher_is_better": False},
    ("POST", "/audits"): {"repair": False},
    ("POST", "/controllers/failover"): {},
    ("POST", "/models/{version}/promote"): {},
    ("POST", "/models/{version}/rollback"): {},
    ("PUT", "/projects/{project_id}"): {"max_pool_percent": 50},
    ("POST", "/plans"): {},
    ("POST", "/plans/{plan}/apply"): {},
    ("POST", "/plans/{plan}/cancel"): {},
    ("POST", "/hosts/{name}/drain"): {},
    ("POST", "/hosts/{name}/restore"): {},
    ("POST", "/planner-jobs"): {"source": "generated"},
    ("POST", "/planner-jobs/{job}/cancel"): {},
    ("PUT", "/consolidation"): {"frozen": False},
    ("PUT", "/consolidation/limits"): {"least_awake": None},
}


def walk():
    """Yield every (method, path) of the API."""
    return [(method, path) for path, methods in ROUTES.items() for method in methods]


def fill(path, api):
    """Return a path with the names of what the sample rack has."""
    name = "controller-1" if path.startswith("/controllers") else "host-1"
    if path.endswith("/fence"):
        name = "host-3"  # the one whose agent is silent
    if path.endswith("/delegate"):
        name = "host-2"  # it is asked for nothing yet
    if path.endswith("/reclaim"):
        name = "host-3"  # so is this one
    names = {
        "uuid": api.allocations[0],
        "consumer": CONSUMER,
        "version": MODEL,
        "project_id": BLUE,
        "loan": sample_rack.LOAN,
        "plan": sample_plans.PROPOSED,
        "job": sample_jobs.WAITING if path.endswith("/cancel") else sample_jobs.ENDED,
    }
    return path.format(pool="pool0", index=0, name=name, host="host-1", **names)


def test_the_table_has_every_route():
    assert set(walk()) == set(ALLOWED)


@pytest.mark.parametrize("persona", PERSONAS)
def test_each_route(api, call, persona):
    for method, path in walk():
        response = call(method, fill(path, api), PERSONAS[persona], json=BODIES.get((method, path)))
        where = f"{persona} {method} {path}: {response.text}"
        if persona in ALLOWED[method, path]:
            assert response.status_code == REFUSED.get((method, path), ROUTES[path][method].status), where
            continue
        hidden = persona == "other-project" and path in HIDDEN
        expected = 401 if persona == "no-token" else 404 if hidden else 403
        assert response.status_code == expected, where
        assert "pool0" not in response.text, where
        assert "controller-1" not in response.text, where
        assert "sha256" not in response.text, where
        assert sample_rack.INCARNATIONS["host-1"] not in response.text, where
        assert error_of(response)["code"].startswith("pondstack."), where


@pytest.mark.parametrize("persona", ["manager", "member", "reader", "other-project"])
def test_a_project_never_learns_a_place_or_another_project(api, call, persona):
    pages = [call("GET", "/allocations", PERSONAS[persona]).text]
    pages += [call("GET", f"/allocations/{uuid}", PERSONAS[persona]).text for uuid in api.allocations]
    for path in ("/loans", f"/loans/{sample_rack.LOAN}", "/shares", f"/shares/{CONSUMER}"):
        pages.append(call("GET", path, PERSONAS[persona]).text)
    for secret in ("host-1", "host-2", "host-3", "pool0", sample_rack.POOL, "extents", "buffers", sample_rack.GREEN):
        assert not any(secret in page for page in pages)
    assert all((BLUE in page) == (persona != "other-project") for page in (pages[0], *pages[-4:]))


def test_a_project_cannot_tell_a_foreign_allocation_from_none(api, call):
    foreign = error_of(call("GET", f"/allocations/{api.allocations[2]}", PERSONAS["member"]))
    nothing = error_of(call("GET", f"/allocations/{sample_rack.POOL}", PERSONAS["member"]))
    assert foreign["detail"].replace(api.allocations[2], "") == nothing["detail"].replace(sample_rack.POOL, "")
    assert foreign["code"] == nothing["code"]


def test_the_operator_can_open_the_rack_to_readers_by_a_policy_file(call, tmp_path):
    (tmp_path / "policy.yaml").write_text('"memory:pools:list": "role:reader"\n')
    assert call("GET", "/pools", PERSONAS["reader"]).status_code == 200
    assert call("GET", "/hosts", PERSONAS["reader"]).status_code == 403


@pytest.mark.parametrize("persona", ["manager", "member", "reader", "other-project"])
def test_a_project_sees_its_own_splits_and_not_why(call, persona):
    mine = persona != "other-project"
    listed = call("GET", "/splits", PERSONAS[persona]).json()["splits"]
    assert [item["consumer_uuid"] for item in listed] == ([CONSUMER] if mine else [])
    fields = {"consumer_uuid", "project_id", "local_mib", "pool_mib", "source", "created_at"}
    assert all(set(item) == fields for item in listed)
    if mine:
        assert call("GET", f"/splits/{CONSUMER}", PERSONAS[persona]).json() == listed[0]
    assert call("GET", f"/splits?project_id={sample_rack.GREEN}", PERSONAS[persona]).status_code == 403


def test_a_split_of_which_nova_told_nothing_is_no_project_s(call):
    path = f"/splits/{sample_rack.CONSUMERS[2]}"
    assert call("GET", path, PERSONAS["system-reader"]).json()["project_id"] is None
    assert call("GET", path, PERSONAS["member"]).status_code == 404
