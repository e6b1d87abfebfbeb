"""Fixtures of the API's tests."""

import pytest
import requests

from pondstack_rack.servers import free_port
from tests.fixtures.api import URL, ApiFixture


@pytest.fixture
def api(tmp_path):
    """An application with a rack of its own."""
    fixture = ApiFixture(tmp_path)
    yield fixture
    fixture.close()


@pytest.fixture
def call(api):
    """Send one request of the newest microversion as the operator, or as `headers` say."""

    def send(method, path, headers=None, version="latest", **arguments) -> requests.Response:
        headers = {"X-Auth-Token": "admin:ops"} if headers is None else dict(headers)
        headers["OpenStack-API-Version"] = f"memory {version}"
        return api.session().request(method, URL + path, headers=headers, **arguments)

    return send


@pytest.fixture
def keystone(tmp_path):
    """An application that checks tokens."""
    group = {"auth_type": "password", "auth_url": f"http://127.0.0.1:{free_port()}/v3", "username": "pondstack"}
    group |= {"password": "secret", "http_request_max_retries": 0, "www_authenticate_uri": "http://keystone.test"}
    api = ApiFixture(tmp_path, auth_strategy="keystone", keystone_authtoken=group)
    yield api
    api.close()


def error_of(response):
    """Return the one error of an answer, checked for its form."""
    (error,) = response.json()["errors"]
    assert error["status"] == response.status_code
    assert error["request_id"] == response.headers["x-openstack-request-id"]
    assert {"code", "title", "detail"} <= set(error)
    return error
