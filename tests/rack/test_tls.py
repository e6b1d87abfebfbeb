"""The rack of these tests runs with TLS=1: a guest boots, what is connected is encrypted, and others are refused."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import amqp
import pymysql
import pytest
import sqlalchemy as sa
from keystoneauth1.adapter import Adapter
from oslo_config import cfg

from pondstack_rack.layout import PORT_OFFSETS
from pondstack_rack.rack import Rack
from pondstack_rack.servers import LOOPBACK, USER
from pondstack_rack.services import database, keystone
from pondstack_rack.services.image import BLANK
from pondstack_rack.services.keystone import CATALOGUE

pytestmark = [pytest.mark.rack, pytest.mark.timeout(600)]

BOOT_SECONDS = 180.0
SECONDS = 30.0
LEDGERS = ("pondstack.conf", "keystone.conf", "placement.conf", "glance-api.conf", "neutron.conf", "nova.conf")


@pytest.fixture(autouse=True)
def with_tls(rack: Rack) -> None:
    if not rack.layout.sizes.tls:
        pytest.skip("this rack was made without TLS=1")


def text(path: Path) -> str:
    return path.read_text().strip()


def test_a_guest_with_pool_memory_boots_and_goes(rack: Rack) -> None:
    tenant = rack.connection(keystone.TENANT)
    flavor, image = tenant.compute.find_flavor("pond.fixed.small"), tenant.image.find_image(BLANK)
    server = tenant.compute.create_server(name="tls", flavor_id=flavor.id, image_id=image.id, networks="none")
    try:
        server = tenant.compute.wait_for_server(server, wait=BOOT_SECONDS)
        memory = Adapter(keystone.session(rack.layout), "memory", region_name="RegionOne")
        allocations = memory.get("/allocations?limit=1000").json()["allocations"]
        assert [item["state"] for item in allocations if item["consumer_uuid"] == server.id] == ["online"]
    finally:
        tenant.compute.delete_server(server)
        tenant.compute.wait_for_delete(server, wait=BOOT_SECONDS)


def test_every_connection_of_the_broker_is_encrypted(rack: Rack) -> None:
    broker = database.rabbitmq(rack.layout)
    said = broker.rabbitmqctl("list_connections", "ssl", "ssl_protocol", "state")
    connections = [line.split("\t") for line in said.splitlines()]
    connections = [words for words in connections if words[0] in ("true", "false")]
    assert len(connections) >= len(rack.layout.all_hosts) * 2
    assert {words[0] for words in connections} == {"true"}
    assert {words[1] for words in connections} <= {"tlsv1.3", "tlsv1.2"}


def test_the_broker_lets_nobody_in_in_clear(rack: Rack) -> None:
    password = text(rack.layout.root / "rabbitmq" / "password")
    address = f"{LOOPBACK}:{rack.layout.port('rabbitmq')}"
    with pytest.raises((amqp.exceptions.AMQPError, OSError)):
        amqp.Connection(address, userid=USER, password=password, connect_timeout=SECONDS).connect()


@pytest.mark.parametrize("name", LEDGERS)
def test_every_service_proves_the_database_and_speaks_to_it_by_tls(rack: Rack, name: str) -> None:
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(rack.layout.etc / name)])
    group = "placement_database" if name == "placement.conf" else "database"
    conf.register_opt(cfg.StrOpt("connection"), group=group)
    url = sa.make_url(conf[group].connection)
    assert url.query["ssl_ca"] == str(rack.layout.authority)
    with engine(url) as made, made.connect() as connection:
        assert connection.execute(sa.text("SHOW STATUS LIKE 'Ssl_version'")).one()[1] == "TLSv1.3"


@contextmanager
def engine(url: sa.URL) -> Iterator[sa.Engine]:
    made = sa.create_engine(url, poolclass=sa.NullPool)
    try:
        yield made
    finally:
        made.dispose()


def test_the_database_takes_no_password_in_clear(rack: Rack) -> None:
    password, port = text(rack.layout.root / "mariadb" / "password"), rack.layout.port("mariadb")
    login = {"host": LOOPBACK, "port": port, "user": USER, "password": password}
    pymysql.connect(**login, ssl_ca=str(rack.layout.authority)).close()
    with pytest.raises(pymysql.err.OperationalError, match=r"Access denied|require_secure_transport"):
        pymysql.connect(**login, ssl_disabled=True)


@pytest.mark.parametrize("name", sorted({"keystone", *CATALOGUE}))
def test_every_api_speaks_by_tls_only(rack: Rack, name: str) -> None:
    url, certificate = rack.layout.url(name), rack.layout.certificate("api")
    assert name in PORT_OFFSETS
    assert url.startswith("https://")
    assert certificate is not None
    with pytest.raises((URLError, OSError)):
        urlopen(url.replace("https", "http"), timeout=SECONDS)
    with pytest.raises(URLError, match="certificate verify failed"):
        urlopen(url, timeout=SECONDS, context=ssl.create_default_context())
    with socket.create_connection((LOOPBACK, rack.layout.port(name)), SECONDS) as plain:
        with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
            certificate.context().wrap_socket(plain, server_hostname="other.example")


def test_the_catalogue_names_no_endpoint_in_clear(rack: Rack) -> None:
    identity = Adapter(keystone.session(rack.layout), service_type="identity", region_name="RegionOne")
    urls = [entry["url"] for entry in identity.get("/endpoints").json()["endpoints"]]
    assert len(urls) > len(CATALOGUE)
    assert [url for url in urls if not url.startswith("https://")] == []


def test_no_service_has_found_a_certificate_wrong(rack: Rack) -> None:
    logs = sorted(rack.layout.log.glob("*.log"))
    assert [path.name for path in logs if "certificate verify failed" in path.read_text(errors="replace")] == []
