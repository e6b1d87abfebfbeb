"""Servers with a certificate: clients know them by name and authority, and connections in clear are refused."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import oslo_messaging
import pytest
import sqlalchemy as sa
from kombu.exceptions import OperationalError
from oslo_config import cfg
from oslo_messaging import exceptions

from pondstack.rpc.transport import get_oslo_transport
from pondstack_rack.servers import LOOPBACK, Certificate, MariaDBServer, PostgreSQLServer, RabbitMQServer, certificates

DATABASES = {"mariadb": MariaDBServer, "postgresql": PostgreSQLServer}
CIPHER = {
    "mariadb": "SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Ssl_version'",
    "postgresql": "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
}
EXCHANGE = "of-the-test"
IN_CLEAR = {"mariadb": "ssl_disabled=true", "postgresql": "sslmode=disable"}


@pytest.fixture(scope="module")
def folder(short_directory: Callable[[str], Path]) -> Path:
    """Certificates of a server that is reached by its address, and of somebody else."""
    made = short_directory("tls")
    for name in ("known", "other"):
        certificates.make(made / name, ["server"], [LOOPBACK])
    for path in (made / "known", made / "other"):
        path.chmod(0o755)
    return made


@pytest.fixture(scope="module", params=sorted(DATABASES))
def database(request: pytest.FixtureRequest, folder: Path, short_directory: Callable[[str], Path]) -> Iterator[Any]:
    server = DATABASES[request.param](
        short_directory(request.param[:2]), tls=Certificate.of(folder / "known", "server")
    )
    try:
        yield server.start()
    finally:
        server.stop()


def connect(url: str) -> Any:
    """Return what the server says of a connection's encryption; raises what SQLAlchemy does."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        return connection.execute(sa.text(CIPHER[{"mysql": "mariadb"}.get(engine.dialect.name, "postgresql")])).scalar()


def test_a_database_is_spoken_to_by_tls(database: Any) -> None:
    assert connect(database.database_url("one")) in {"TLSv1.2", "TLSv1.3"}


def test_a_database_refuses_a_password_in_clear(database: Any) -> None:
    plain = f"{database.database_url('one').split('?')[0]}?{IN_CLEAR[database.name]}"
    with pytest.raises(sa.exc.OperationalError, match=r"Access denied|require_secure_transport|no pg_hba\.conf entry"):
        connect(plain)


def test_a_database_of_another_authority_is_not_spoken_to(database: Any) -> None:
    url = database.database_url("one").replace("/known/", "/other/")
    with pytest.raises(sa.exc.OperationalError, match="certificate verify failed"):
        connect(url)


def test_a_database_of_another_name_is_not_spoken_to(database: Any) -> None:
    with pytest.raises(sa.exc.OperationalError, match=r"not valid for 'localhost'|does not match host name"):
        connect(database.database_url("one").replace(LOOPBACK, "localhost"))


@pytest.fixture(scope="module")
def broker(folder: Path, short_directory: Callable[[str], Path]) -> Iterator[RabbitMQServer]:
    server = RabbitMQServer(short_directory("mq"), tls=Certificate.of(folder / "known", "server"))
    try:
        yield server.start()
    finally:
        server.stop()


def publish(url: str, **options: Any) -> None:
    """Publish a message that nobody waits for; raises when it cannot. `options` are those of a file."""
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    get_oslo_transport(conf, url).cleanup()  # it registers the options
    for name, value in options.items():
        conf.set_override(name, value, group="oslo_messaging_rabbit")
    transport = get_oslo_transport(conf, url)
    try:
        client = oslo_messaging.get_rpc_client(transport, oslo_messaging.Target(exchange=EXCHANGE, topic="t"), retry=0)
        client.cast({}, "x")
    finally:
        transport.cleanup()


def test_a_broker_is_spoken_to_by_tls(broker: RabbitMQServer) -> None:
    url = broker.transport_url("one")
    assert EXCHANGE not in broker.rabbitmqctl("-p", "one", "list_exchanges", "name")
    publish(url)
    assert EXCHANGE in broker.rabbitmqctl("-p", "one", "list_exchanges", "name")
    assert broker.tls is not None
    publish(url.split("?")[0], ssl=True, ssl_ca_file=str(broker.tls.authority))


def test_a_broker_has_no_listener_in_clear(broker: RabbitMQServer) -> None:
    said = broker.rabbitmqctl("status")
    assert f"port: {broker.port}, protocol: amqp/ssl" in said
    assert "protocol: amqp," not in said
    with socket.create_connection((LOOPBACK, broker.port), timeout=30) as probe:
        probe.sendall(b"AMQP\x00\x00\x09\x01")
        assert probe.recv(1) != b"\x01"


@pytest.mark.parametrize(
    "query", ["", "?ssl=true&ssl_ca_file={other}", "?ssl=true&ssl_ca_file={known}"], ids=["clear", "stranger", "name"]
)
def test_who_does_not_trust_a_broker_sends_it_nothing(broker: RabbitMQServer, folder: Path, query: str) -> None:
    authority = {name: folder / name / certificates.AUTHORITY for name in ("known", "other")}
    url = broker.transport_url("one").split("?")[0] + query.format(**authority)
    if "known" in query:
        url = url.replace(LOOPBACK, "localhost")
    with pytest.raises((exceptions.MessageDeliveryFailure, OperationalError)):
        publish(url)
