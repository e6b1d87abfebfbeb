"""/healthcheck: 200 or 503, and what is wrong."""

import re
import ssl

import oslo_messaging
import pytest
from oslo_config import cfg
from oslo_middleware import healthcheck as oslo_healthcheck

from pondstack.domain.errors import Unavailable
from pondstack_api.health import broker
from pondstack_rack.servers import free_port
from tests.fixtures.api import URL, ApiFixture


def health(api, accept="application/json"):
    return api.session().get(URL + "/healthcheck", headers={"Accept": accept})


def test_well_without_a_token(api):
    response = health(api)
    assert response.status_code == 200
    broker, database, leader = sorted(response.json()["reasons"])
    assert (broker, database) == ("broker: OK", "database: OK")
    assert re.fullmatch(r"leader: OK, epoch 1, renewed \d+\.\d s ago", leader)
    assert "database: OK" in health(api, "text/plain").text


def test_no_database(api, monkeypatch):
    def refuse():
        raise Unavailable("connection refused")

    monkeypatch.setattr(api.services.reader, "ping", refuse)
    response = health(api)
    assert response.status_code == 503
    assert "database: connection refused" in response.json()["reasons"]


def test_a_lease_that_nobody_renews(api):
    with api.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE leadership SET renewed_at = renewed_at - 100")
    response = health(api)
    assert response.status_code == 503
    assert any(reason.startswith("leader: lease is 1") for reason in response.json()["reasons"])


def test_who_leads_is_for_those_only_to_whom_the_operator_opens_the_details(api, tmp_path, monkeypatch):
    # It looks at every object of the process, and ends at a dead weak proxy that another test has left behind.
    monkeypatch.setattr(oslo_healthcheck, "_find_objects", lambda _kind: [])
    assert "controller-1" not in health(api).text
    (tmp_path / "detailed").mkdir()
    detailed = ApiFixture(tmp_path / "detailed", healthcheck={"detailed": "true"})
    (shown,) = [reason for reason in health(detailed).json()["reasons"] if reason["reason"].startswith("leader")]
    assert shown["details"] == "controller-1:101:5f0a11b2 leads with epoch 1"
    detailed.close()


def test_no_leader_yet(api):
    with api.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE leadership SET holder = ''")
    response = health(api)
    assert response.status_code == 503
    assert any("start pondstack-controller" in reason for reason in response.json()["reasons"])


def test_no_broker(tmp_path):
    port = free_port()
    api = ApiFixture(tmp_path, transport_url=f"rabbit://guest:secret@127.0.0.1:{port}/")
    response = health(api)
    assert response.status_code == 503
    assert "broker: not reachable (ConnectionRefusedError); look at transport_url" in response.json()["reasons"]
    assert "127.0.0.1" not in response.text
    api.close()


@pytest.mark.parametrize("in_the_url", [True, False])
def test_the_broker_proves_its_name_before_it_gets_the_password(tmp_path, in_the_url):
    file = tmp_path / "pondstack.conf"
    file.write_text("" if in_the_url else "[oslo_messaging_rabbit]\nssl = true\nssl_ca_file = /ca\n")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(file)])
    query = "?ssl=true&ssl_ca_file=/ca" if in_the_url else ""
    url = oslo_messaging.TransportURL.parse(conf, f"rabbit://u:p@broker1/{query}")
    proved = {"ca_certs": "/ca", "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": "broker1"}
    assert broker.tls_options(conf, url, "broker1") == proved


def test_a_broker_without_tls_is_asked_without():
    conf = cfg.ConfigOpts()
    conf([])
    url = oslo_messaging.TransportURL.parse(conf, "rabbit://u:p@broker1/")
    assert broker.tls_options(conf, url, "broker1") is False


@pytest.mark.functional
def test_a_real_broker(tmp_path, rabbitmq):
    api = ApiFixture(tmp_path, transport_url=rabbitmq.transport_url("api-health"))
    assert health(api).status_code == 200
    api.close()


@pytest.mark.functional
def test_a_real_broker_that_does_not_let_us_in(tmp_path, rabbitmq):
    name, _, place = rabbitmq.transport_url().rpartition("@")
    scheme, _, _ = name.rpartition(":")
    api = ApiFixture(tmp_path, transport_url=f"{scheme}:wrong@{place}")
    assert health(api).status_code == 503
    api.close()


def test_one_host_of_two_brokers_is_enough(tmp_path, rabbitmq):
    place = rabbitmq.transport_url().removeprefix("rabbit://")
    api = ApiFixture(tmp_path, transport_url=f"rabbit://guest:guest@127.0.0.1:{free_port()},{place}")
    assert health(api).status_code == 200
    api.close()


def test_a_plugin_that_is_not_there_stops_the_server(tmp_path):
    with pytest.raises(cfg.ConfigFileValueError, match="no plugin moon_phase"):
        ApiFixture(tmp_path, healthcheck={"backends": "moon_phase"})
