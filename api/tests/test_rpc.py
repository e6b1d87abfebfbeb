"""The API and a controller with a real RabbitMQ between them."""

import time

import oslo_messaging
import pytest

from pondstack.rpc import targets
from pondstack_rack.servers import free_port
from tests.fixtures.api import URL, ApiFixture
from tests.fixtures.identities import Identities

from .conftest import error_of

OPERATOR = {"X-Auth-Token": "admin:ops"}


def disable(api, generation=0):
    body = {"enabled": False, "generation": generation}
    return api.session().put(URL + "/hosts/host-1", headers=OPERATOR, json=body)


@pytest.fixture
def api(tmp_path, rabbitmq):
    """An application whose controller is at the other end of RabbitMQ, once one serves there."""
    identities = Identities(tmp_path / "credentials")
    identities.credential("api/api")
    url, folder = rabbitmq.transport_url("api-rpc"), {"folder": str(identities.folder)}
    fixture = ApiFixture(tmp_path, transport_url=url, controller_timeout_seconds=60, pondstack_identity=folder)
    fixture.bus = identities.everybody(fixture.conf)
    fixture.stand_in, fixture.services._controller = fixture.controller, None
    yield fixture
    fixture.close()


class NodeEndpoint:
    """Serves what each controller answers by its name."""

    target = oslo_messaging.Target(version=targets.RPC_VERSION)

    def __init__(self, controller):
        self.controller = controller

    def failover(self, _context, *, to):
        """Hand over."""
        self.controller.failover(leader="controller-1", to=to)


class Endpoint:
    """Serves a stand-in as pondstack-controller does: errors of ours cross the wire without a trace in our log."""

    target = oslo_messaging.Target(version=targets.RPC_VERSION)

    def __init__(self, controller):
        self.controller = controller

    def set_host(self, _context, **arguments):
        """Enable or disable a host."""
        return self.controller.set_host(**arguments)

    def audit(self, _context, **arguments):
        """Audit."""
        return self.controller.audit(**arguments)


@pytest.fixture
def controller(api):
    """A controller that serves."""
    server = api.bus.server(targets.controller_target("controller-1"), [Endpoint(api.stand_in)])
    server.start()
    yield api.stand_in
    server.stop()
    server.wait()


@pytest.mark.functional
@pytest.mark.usefixtures("controller")
def test_a_change(api):
    assert disable(api).json()["enabled"] is False


@pytest.mark.functional
@pytest.mark.usefixtures("controller")
def test_an_error_of_the_controller_arrives_with_code_and_text_and_nothing_else(api):
    response = disable(api, generation=7)
    assert response.status_code == 409
    error = error_of(response)
    assert error["code"] == "pondstack.generation_conflict"
    assert error["detail"] == "host host-1 is at generation 0, not 7; read it again"


@pytest.mark.functional
def test_a_fault_of_the_controller_is_not_shown(api, controller):
    controller.error = RuntimeError("secret of the house")
    response = disable(api)
    assert response.status_code == 500
    assert "secret" not in response.text


@pytest.mark.functional
def test_a_fail_over_reaches_the_leader_by_its_name(api):
    server = api.bus.server(targets.node_target("controller-1"), [NodeEndpoint(api.stand_in)])
    server.start()
    try:
        response = api.session().post(
            URL + "/controllers/failover",
            headers={**OPERATOR, "OpenStack-API-Version": "memory 1.1"},
            json={"to": "controller-2"},
        )
    finally:
        server.stop()
        server.wait()
    assert response.status_code == 202
    assert api.stand_in.failovers == [("controller-1", "controller-2")]


@pytest.mark.functional
def test_no_controller(api):
    api.conf.set_override("controller_timeout_seconds", 2, group="api")
    started = time.monotonic()
    response = disable(api)
    assert response.status_code == 503
    assert response.headers["Retry-After"]
    assert "may still take effect" in error_of(response)["detail"]
    assert time.monotonic() - started < 15


def test_no_broker(tmp_path):
    """oslo.messaging would wait for it for ever; reads go on meanwhile."""
    url = f"rabbit://guest:guest@127.0.0.1:{free_port()}/"
    identities = Identities(tmp_path / "credentials")
    identities.credential("api/api")
    folder = {"folder": str(identities.folder)}
    api = ApiFixture(tmp_path, transport_url=url, controller_timeout_seconds=1, pondstack_identity=folder)
    api.services._controller = None
    started = time.monotonic()
    response = disable(api)
    assert response.status_code == 503
    assert error_of(response)["code"] == "pondstack.unavailable"
    assert time.monotonic() - started < 15
    assert api.session().get(URL + "/hosts/host-1", headers=OPERATOR).status_code == 200
    api.close()
