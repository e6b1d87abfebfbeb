"""Bad days: the controller or the database is gone, the program has a fault, the operator's error is shown as it is."""

import oslo_messaging
import pytest

from pondstack.domain import errors as domain_errors
from pondstack_api import errors
from pondstack_api.routes import ROUTES
from tests.fixtures import sample_jobs, sample_plans, sample_rack
from tests.fixtures.api import URL, ApiFixture
from tests.fixtures.sample_models import RUNNING

from .conftest import error_of

WRITES = {
    ("PUT", "/hosts/{name}"): {"enabled": False, "generation": 0},
    ("DELETE", "/hosts/{name}"): None,
    ("DELETE", "/pools/{pool}"): None,
    ("POST", "/hosts/{name}/fence"): {"reason": "it burns", "generation": 0},
    ("POST", "/hosts/{name}/unfence"): {},
    ("POST", "/hosts/{name}/delegate"): {"mib": 512},
    ("POST", "/hosts/{name}/reclaim"): {"mib": 64},
    ("POST", "/hosts/{name}/suspend"): {},
    ("POST", "/hosts/{name}/wake"): {},
    ("PUT", "/hosts/{name}/tiering"): {"on": False, "generation": 0},
    ("PUT", "/hosts/{name}/slices"): {"purpose": "base", "count": 1, "generation": 0},
    ("POST", "/models/{version}/promote"): {},
    ("POST", "/models/{version}/rollback"): {},
    ("PUT", "/projects/{project_id}"): {"max_pool_percent": 0},
    ("POST", "/plans"): {},
    ("POST", "/planner-jobs"): {},
    ("POST", "/planner-jobs/{job}/cancel"): {},
    ("DELETE", "/planner-jobs/{job}"): None,
    ("POST", "/plans/{plan}/apply"): {},
    ("POST", "/plans/{plan}/cancel"): {},
    ("POST", "/hosts/{name}/drain"): {},
    ("POST", "/hosts/{name}/restore"): {},
    ("PUT", "/consolidation"): {"frozen": False},
    ("PUT", "/consolidation/limits"): {"least_awake": None},
    ("POST", "/allocations/{consumer}/mitigate"): {},
    ("POST", "/allocations/{consumer}/abort"): {},
    ("PUT", "/performance/{consumer}"): {"metric": "p99_ms", "value": 1.5, "higher_is_better": False},
    ("POST", "/audits"): {},
    ("POST", "/controllers/failover"): {},
}


NAMES = {"name": "host-1", "pool": "pool0", "version": RUNNING, "project_id": sample_rack.BLUE}
NAMES["plan"] = sample_plans.PROPOSED
NAMES["job"] = sample_jobs.ENDED
NAMES["consumer"] = sample_rack.CONSUMERS[0]


def test_the_table_has_every_write():
    real = {(method, path) for path, methods in ROUTES.items() for method in methods if method != "GET"}
    assert real == set(WRITES)


@pytest.mark.parametrize(("method", "path"), WRITES)
@pytest.mark.parametrize(
    "error",
    [
        oslo_messaging.MessagingTimeout("no reply"),
        oslo_messaging.MessageDeliveryFailure("no broker"),
        domain_errors.Unavailable("no leader"),
        domain_errors.NotLeader("another one leads"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_controller_is_a_503_that_says_when_to_come_back(api, call, error, method, path):
    api.controller.error = error
    response = call(method, path.format(**NAMES), json=WRITES[method, path])
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "2"
    assert response.headers["openstack-api-version"] == "memory 1.24"
    assert error_of(response)["code"] == getattr(error, "code", "pondstack.unavailable")


def test_no_leader_is_a_503_of_a_fail_over(api, call):
    api.silence("controller-1")
    response = call("POST", "/controllers/failover", json={"to": "controller-2"})
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "2"
    assert error_of(response)["code"] == "pondstack.not_leader"
    assert api.controller.failovers == []


def test_a_fail_over_to_nobody_is_refused(api, call):
    api.silence("controller-2")
    response = call("POST", "/controllers/failover", json={})
    assert response.status_code == 409
    assert "controller-1 keeps the lead" in error_of(response)["detail"]
    assert api.controller.failovers == []


def test_the_wait_is_an_option(tmp_path):
    api = ApiFixture(tmp_path, retry_after_seconds=17)
    api.controller.error = domain_errors.Unavailable("no leader")
    response = api.session().post(URL + "/audits", json={}, headers={"X-Auth-Token": "admin:ops"})
    assert response.headers["Retry-After"] == "17"
    api.close()


@pytest.mark.parametrize("path", ["/pools", "/hosts/host-1", "/allocations", "/leader", "/controllers"])
def test_no_schema_is_a_503_that_names_the_command(api, call, path):
    with api.database.engine.begin() as connection:
        for table in ("host_pools", "slices", "allocations", "hosts", "pools", "leadership", "controllers"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
    response = call("GET", path)
    assert response.status_code == 503
    assert response.headers["Retry-After"]
    assert "pondstack-manage db sync" in error_of(response)["detail"]


def test_no_database_in_the_configuration_is_a_503_that_names_the_option(api, call):
    api.services._reader = None
    response = call("GET", "/pools")
    assert response.status_code == 503
    assert "connection" in error_of(response)["detail"]


def test_a_fault_is_logged_and_not_shown(api, call, caplog):
    api.controller.error = RuntimeError("secret of the house")
    response = call("POST", "/audits", json={})
    assert response.status_code == 500
    error = error_of(response)
    assert error["code"] == "pondstack.error"
    assert "secret" not in response.text
    assert "secret of the house" in caplog.text


def _tree(error):
    return {error} | {leaf for child in error.__subclasses__() for leaf in _tree(child)}


OURS = sorted(
    (e for e in _tree(domain_errors.PondError) if e.__module__ in {domain_errors.__name__, errors.__name__}),
    key=lambda error: error.code,
)


# 405 is made by the router, which knows the methods that are allowed.
@pytest.mark.parametrize("error", [error for error in OURS if error.status != 405], ids=lambda error: error.code)
def test_each_error_of_the_controller_keeps_code_status_and_text(api, call, error):
    api.controller.error = error("turn the key first")
    response = call("POST", "/audits", json={})
    assert response.status_code == error.status
    assert error_of(response)["code"] == error.code
    assert error_of(response)["detail"] == "turn the key first"


def test_codes_are_unique():
    assert len({error.code for error in OURS}) == len(OURS)
