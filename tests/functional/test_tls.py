"""The page TLS of the installation guide, followed: controller, API and agent on a broker and a database with it.

The page's commands run on files below a folder; the rack's own servers take the certificates that they make.
"""

import re
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import amqp
import pytest
import requests
from oslo_config import cfg
from sqlalchemy import text

from pondstack.cmd import manage
from pondstack.db.connection.engine import Database
from pondstack.devices.emulated import create_device
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.identity.identity import Role
from pondstack.rpc.transport import get_transport
from pondstack_rack.daemon import Daemon
from pondstack_rack.ports import free_base
from pondstack_rack.processes import environment
from pondstack_rack.servers import USER, Certificate, MariaDBServer, RabbitMQServer
from pondstack_rack.wait import wait_until
from tests.fixtures.identities import Identities

pytestmark = pytest.mark.functional

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "doc" / "source" / "install" / "tls.md").read_text()
FOLLOWED = ("Certificates", "Broker", "Database", "Controllers and API", "Agents", "Nova")
NAME = "localhost"
SECONDS = 60.0
STUBS = "systemctl() { :; }\nopenstack() { :; }\n"
"""Commands of the page that are for services of the system, or for a Keystone."""
PLACEHOLDERS = {"BROKER": NAME, "DATABASE": NAME, "KEYSTONE": NAME, "USER_PASS": "unused"}
CONTROLLER = """
[controller]
name = c1
pool_devices = pool0=emulated:{device}
[placement]
enabled = false
[api]
auth_strategy = noauth2
"""
AGENT = """
[DEFAULT]
host = h1
[agent]
state_dir = {folder}/agent
[emulated]
device_paths = {device}
"""


def script(folder: Path) -> str:
    """Return the page's commands, for files below a folder and without users of a system."""
    blocks = []
    for title in FOLLOWED:
        section = re.search(rf"^## {title}$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
        assert section, title
        blocks += re.findall(r"^```sh\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)
    commands = re.sub(r"(?<![\w/])/(etc|root)/", rf"{folder}/\1/", "".join(blocks))
    return STUBS + re.sub(r" -g \w+", "", commands)


@dataclass
class Place:
    """Files as the guide leaves them, and servers with its certificates."""

    folder: Path
    rabbitmq: RabbitMQServer
    mariadb: MariaDBServer
    port: int
    identities: Identities

    @property
    def authority(self) -> Path:
        return self.folder / "etc/pondstack/tls/authority.pem"

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self.port}"

    def file(self, name: str) -> Path:
        return self.folder / "etc" / name

    def conf(self, name: str) -> cfg.ConfigOpts:
        conf = cfg.ConfigOpts()
        conf(["--config-file", str(self.file(name))], project="pondstack")
        return conf


@pytest.fixture(scope="module")
def place(short_directory: Callable[[str], Path]) -> Iterator[Place]:
    folder = short_directory("guide")
    for name in (
        "pondstack/pondstack.conf",
        "pondstack/pondstack-agent.conf",
        "pondstack/pondstack-uwsgi.ini",
        "nova/nova.conf",
    ):
        path = folder / "etc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        found = (ROOT / "etc/deploy" / path.name).read_text()
        for word, value in PLACEHOLDERS.items():
            found = found.replace(word, value)
        path.write_text(found)
    (folder / "etc/mysql/mariadb.conf.d").mkdir(parents=True)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script(folder)],
        env={**environment(), "CONTROLLER": NAME},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tls = folder / "etc"
    broker = Certificate(*(tls / "rabbitmq/tls" / name for name in ("authority.pem", "broker.pem", "broker.key")))
    ledger = Certificate(broker.authority, tls / "mysql/tls/database.pem", tls / "mysql/tls/database.key")
    base = free_base(3)
    rabbitmq = RabbitMQServer(folder / "mq", base, tls=broker)
    mariadb = MariaDBServer(folder / "db", base + 1, tls=ledger)
    made = Place(folder, rabbitmq, mariadb, base + 2, Identities(folder / "credentials"))
    try:
        rabbitmq.launch()
        mariadb.start()
        rabbitmq.start()
        rabbitmq.transport_url("pondstack")
        mariadb.database_url("pondstack")
        run_on(made)
        yield made
    finally:
        rabbitmq.stop()
        mariadb.stop()


def run_on(place: Place) -> None:
    """Have the files name the servers' ports and passwords, and what is of this test alone."""
    own = {
        "//NODE:": f"//{USER}:",
        "hostname=NODE": f"hostname={place.folder.name}",
        "RABBIT_PASS": place.rabbitmq._password,
        "DB_PASS": place.mariadb._password,
        f"{NAME}:5671": f"{NAME}:{place.rabbitmq.port}",
        f"{NAME}/pondstack": f"{NAME}:{place.mariadb.port}/pondstack",
        "0.0.0.0:8780": f"127.0.0.1:{place.port}",
        "= /etc/": f"= {place.folder}/etc/",
    }
    for path in (*place.file("pondstack").glob("*.*"), place.file("nova/nova.conf")):
        found = path.read_text()
        for word, value in own.items():
            found = found.replace(word, value)
        path.write_text(found)
    device = place.folder / "pool0"
    create_device(device, 4, 1)
    with place.file("pondstack/pondstack.conf").open("a") as file:
        file.write(CONTROLLER.format(device=device) + place.identities.section("controller/c1", "api/c1"))
    with place.file("pondstack/pondstack-agent.conf").open("a") as file:
        file.write(AGENT.format(device=device, folder=place.folder) + place.identities.section("agent/h1"))


@pytest.fixture(scope="module")
def services(place: Place) -> Iterator[Place]:
    """The services, started as their units do."""
    bin_folder, conf = Path(sys.executable).parent, place.file("pondstack/pondstack.conf")
    assert manage.run(["--config-file", str(conf), "db", "sync"]) == 0
    words = {
        "pondstack-controller": ["--config-file", str(conf)],
        "uwsgi": ["--ini", str(place.file("pondstack/pondstack-uwsgi.ini"))],
        "pondstack-agent": ["--config-file", str(place.file("pondstack/pondstack-agent.conf"))],
    }
    env = {**environment(), "PONDSTACK_CONF_FILE": str(conf)}
    daemons = [Daemon(name, [str(bin_folder / name), *rest], place.folder, env=env) for name, rest in words.items()]
    try:
        for daemon in daemons:
            daemon.launch()
        yield place
    finally:
        for daemon in daemons:
            daemon.stop()


def get(place: Place, path: str) -> requests.Response:
    headers = {"X-Auth-Token": "admin:ops", "OpenStack-API-Version": "memory latest"}
    return requests.get(place.url + path, headers=headers, verify=str(place.authority), timeout=SECONDS)


def logs(place: Place) -> str:
    """Return how the logs end, and what the health check says."""
    ends = [f"== {path.name}\n{path.read_text()[-3000:]}" for path in sorted(place.folder.glob("*.log"))]
    return "\n".join([*ends, get(place, "/healthcheck").text if _serves(place) else "no API"])


def test_controller_api_and_agent_work_together(services: Place) -> None:
    """The agent has called the leader over the broker, which has written it to the database; the API reads it there."""

    def complete() -> bool:
        try:
            healthy = get(services, "/healthcheck").status_code == 200
            return healthy and [host["up"] for host in get(services, "/hosts").json()["hosts"]] == [True]
        except requests.ConnectionError:
            return False

    assert wait_until(complete, SECONDS), logs(services)
    said = services.rabbitmq.rabbitmqctl("-s", "list_connections", "ssl", "ssl_protocol").splitlines()
    assert len(said) > 3
    assert {line.split("\t")[0] for line in said} == {"true"}


def test_queues_of_replies_have_the_names_of_node_and_program(services: Place) -> None:
    """As `pondstack-manage broker permissions` has them (pondstack.rpc.broker_permissions.PROCESSES)."""
    assert wait_until(lambda: _serves(services), SECONDS)

    headers = {"X-Auth-Token": "admin:ops"}
    audit = {"url": f"{services.url}/audits", "headers": headers, "json": {"repair": False}}
    said = requests.post(**audit, verify=str(services.authority), timeout=SECONDS)
    assert has_queue(services, "pondstack-agent")
    assert has_queue(services, "uwsgi"), said.text


def has_queue(place: Place, program: str) -> bool:
    """Whether a program of the node waits for replies in a queue that has its name; workers count their queues."""
    tls = {"ca_certs": str(place.authority), "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": NAME}
    login = {"userid": USER, "password": place.rabbitmq._password, "virtual_host": "pondstack"}
    with amqp.Connection(f"{NAME}:{place.rabbitmq.port}", ssl=tls, **login) as connection:
        for number in range(1, 9):
            with suppress(amqp.exceptions.NotFound):
                connection.channel().queue_declare(f"reply_{place.folder.name}:{program}:{number}", passive=True)
                return True
    return False


def test_the_ledger_is_read_by_tls(services: Place) -> None:
    database = Database.from_conf(services.conf("pondstack/pondstack.conf"))
    try:
        version = database.read(lambda session: session.execute(text("SHOW STATUS LIKE 'Ssl_version'")).one()[1])
    finally:
        database.dispose()
    assert version == "TLSv1.3"


def test_novas_client_calls_with_what_is_in_its_file(services: Place) -> None:
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(services.file("nova/nova.conf"))], project="nova")
    conf.register_opt(cfg.StrOpt("transport_url"), group="pondstack")
    services.identities.set(conf, "scheduler/n1")
    bus = get_transport(conf, Role.SCHEDULER, conf.pondstack.transport_url)
    try:
        assert [pool.slices_total for pool in ControllerAPI(bus).snapshot(timeout_seconds=30).pools] == [4]
    finally:
        bus.cleanup()


def test_the_api_speaks_to_nobody_in_clear_and_proves_its_name(services: Place) -> None:
    assert wait_until(lambda: _serves(services), SECONDS)
    with pytest.raises(requests.ConnectionError):
        requests.get(services.url.replace("https", "http") + "/healthcheck", timeout=SECONDS)
    with pytest.raises(requests.exceptions.SSLError, match="certificate verify failed"):
        requests.get(f"{services.url}/healthcheck", timeout=SECONDS)
    address = services.url.replace(NAME, "127.0.0.1")
    with pytest.raises(requests.exceptions.SSLError, match=r"not valid for|doesn't match"):
        requests.get(f"{address}/healthcheck", verify=str(services.authority), timeout=SECONDS)


def test_a_refusal_arrives_though_the_body_was_not_read(services: Place) -> None:
    """Who closes a connection with some of the request unread resets it, and the answer on its way is lost."""
    assert wait_until(lambda: _serves(services), SECONDS)
    for _ in range(20):
        said = requests.post(
            f"{services.url}/audits", json={"repair": "x" * 4096}, verify=str(services.authority), timeout=SECONDS
        )
        assert said.status_code == 401
        assert said.json()["errors"]


def _serves(place: Place) -> bool:
    try:
        return get(place, "/healthcheck").status_code > 0
    except requests.exceptions.SSLError:
        raise
    except requests.ConnectionError:
        return False


def test_the_servers_of_the_test_are_set_up_as_the_page_says(place: Place) -> None:
    said = (
        place.file("rabbitmq/rabbitmq.conf")
        .read_text()
        .replace("ssl.default = 5671", f"ssl.1 = 127.0.0.1:{place.rabbitmq.port}")
    )
    assert set(said.splitlines()) <= set((place.folder / "mq/rabbitmq.conf").read_text().splitlines())
    of_page = [
        line.replace(" = ", "=") for line in place.file("mysql/mariadb.conf.d/99-tls.cnf").read_text().splitlines()
    ]
    assert of_page[0] == "[mariadbd]"
    assert {f"--{line}" for line in of_page[1:]} <= set(place.mariadb.daemon.argv)
