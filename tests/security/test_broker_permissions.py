"""A user of the broker for each node: with what `broker permissions` prints the rack works, and a host stays its own.

On a real RabbitMQ. What is let through all the same, into queues by the default exchange, the signatures refuse
(test_broker.py).
"""

import base64
import hashlib
import json
import os
import shlex
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import amqp
import oslo_messaging
import pytest
from amqp.exceptions import AccessRefused
from oslo_config import cfg

from pondstack.cmd import manage
from pondstack.rpc import broker_permissions, targets
from pondstack.rpc.identity.identity import Identity
from pondstack.rpc.transport import Bus, get_oslo_transport
from pondstack_rack.servers import LOOPBACK, RabbitMQServer
from tests.fixtures.identities import Identities

pytestmark = pytest.mark.functional

SECONDS = 30
USERS = {
    "h1": ("agent/h1", "compute/h1"),
    "h2": ("agent/h2", "compute/h2"),
    "nova-h2": ("compute/h2",),
    "c1": ("controller/c1",),
    "a1": ("api/a1",),
    "s1": ("scheduler/s1",),
}
"""Users of the broker, and the parties that log in as each; nova-h2 is for a host that has two."""


class Endpoint:
    """Says who was called, and keeps what for."""

    target = oslo_messaging.Target(version="1.0")

    def __init__(self, name: str) -> None:
        self._name = name
        self.consumers: list[str] = []

    def __getattr__(self, verb: str) -> Callable[..., str]:
        if verb.startswith("_"):
            raise AttributeError(verb)

        def called(_context: Any, consumer_uuid: str = "", **_arguments: Any) -> str:
            self.consumers.append(consumer_uuid)
            return self._name

        return called


@dataclass
class Place:
    """A virtual host with users, and the parties' buses."""

    broker: RabbitMQServer
    vhost: str
    identities: Identities
    buses: dict[str, Bus] = field(default_factory=dict)
    endpoints: dict[str, Endpoint] = field(default_factory=dict)

    def password(self, user: str) -> str:
        return f"of-{user}"

    def bus(self, party: str) -> Bus:
        if party not in self.buses:
            identity = Identity.parse(party)
            options = broker_permissions.url_options(identity.name)
            # All parties are one process here.
            options["processname"] = f"{broker_permissions.PROCESSES[identity.role]}.{os.getpid()}"
            address = f"{identity.name}:{self.password(identity.name)}@{LOOPBACK}:{self.broker.port}"
            conf = cfg.ConfigOpts()
            conf([], default_config_files=[], default_config_dirs=[])
            transport = get_oslo_transport(conf, f"rabbit://{address}/{self.vhost}?{urlencode(options)}")
            self.buses[party] = Bus(transport, self.identities.border(party))
        return self.buses[party]

    def call(self, party: str, target: Any, verb: str, **arguments: Any) -> Any:
        return self.bus(party).client(target).prepare(timeout=SECONDS).call({}, verb, **arguments)

    def reply_queue(self, party: str) -> str:
        return str(self.bus(party).transport._driver._reply_q)


def definitions(lines: str, place: Place) -> dict[str, Any]:
    """Return what the printed commands set, as RabbitMQ imports it at once, and the users besides."""
    found: dict[str, list[Any]] = {"vhosts": [{"name": place.vhost}], "permissions": [], "topic_permissions": []}
    for line in lines.splitlines():
        words = shlex.split(line, comments=True)
        if words:
            program, verb, option, vhost, user, *values = words
            assert (program, option) == ("rabbitmqctl", "-p")
            kind = verb.removeprefix("set_")
            names = ("exchange", "write", "read") if kind == "topic_permissions" else ("configure", "write", "read")
            found[kind].append({"user": user, "vhost": vhost, **dict(zip(names, values, strict=True))})
    algorithm = {"hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ""}
    users = [{"name": user, "password_hash": hashed(place.password(user)), **algorithm} for user in USERS]
    return {"users": users, **found}


def hashed(password: str) -> str:
    salt = os.urandom(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


@pytest.fixture(scope="module")
def place(rabbitmq: RabbitMQServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("permissions")
    made = Place(rabbitmq, f"permissions-{uuid.uuid4().hex[:8]}", Identities(folder))
    import_definitions(made, folder)
    servers = []
    for party, target in (
        ("agent/h1", targets.agent_target("h1")),
        ("agent/h2", targets.agent_target("h2")),
        ("controller/c1", targets.controller_target("c1")),
        ("controller/c1", targets.node_target("c1")),
    ):
        endpoint = made.endpoints.setdefault(party, Endpoint(party))
        server = made.bus(party).server(target, [endpoint])
        server.start()
        servers.append(server)
    yield made
    for server in servers:
        server.stop()
        server.wait()
    for bus in made.buses.values():
        bus.cleanup()


def import_definitions(place: Place, folder: Path) -> None:
    """Have the broker know the users with what the command prints for them."""
    printed: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.print", lambda text, **_: printed.append(text))
        for user, parties in USERS.items():
            assert manage.run(["broker", "permissions", *parties, "--user", user, "--vhost", place.vhost]) == 0
    file = folder / "definitions.json"
    file.write_text(json.dumps(definitions("\n".join(printed), place)))
    place.broker.rabbitmqctl("import_definitions", str(file))


CALLS = (
    ("compute/h1", targets.agent_target("h1"), "detach", {"consumer_uuid": "c"}, "agent/h1"),
    ("compute/h2", targets.agent_target("h1"), "get_attachment", {"consumer_uuid": "c"}, "agent/h1"),
    ("controller/c1", targets.agent_target("h2"), "report", {"epoch": 1}, "agent/h2"),
    ("agent/h2", targets.controller_target(), "release", {"host": "h2"}, "controller/c1"),
    ("scheduler/s1", targets.node_target(), "snapshot", {}, "controller/c1"),
    ("scheduler/s1", targets.controller_target(), "record_splits", {}, "controller/c1"),
    ("api/a1", targets.controller_target(), "audit", {}, "controller/c1"),
    ("api/a1", targets.node_target(), "controllers", {}, "controller/c1"),
    ("controller/c1", targets.node_target("c1"), "ping", {}, "controller/c1"),
)


@pytest.mark.parametrize(
    ("party", "target", "verb", "arguments", "answers"), CALLS, ids=[f"{c[0]}-{c[2]}" for c in CALLS]
)
def test_each_party_makes_its_calls(
    place: Place, party: str, target: Any, verb: str, arguments: Any, answers: str
) -> None:
    server = target.server
    bound = place.bus(party).client(target).prepare(timeout=SECONDS, **({"server": server} if server else {}))
    assert bound.call({}, verb, **arguments) == answers


def test_queues_of_replies_have_their_hosts_name(place: Place) -> None:
    place.call("compute/h1", targets.agent_target("h1"), "detach", consumer_uuid="c")
    assert place.reply_queue("compute/h1").startswith("reply_h1:nova-compute.")


def test_a_controller_tells_the_cloud(place: Place) -> None:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    url = str(place.bus("controller/c1").transport._driver._url)
    transport = oslo_messaging.get_notification_transport(conf, url=url)
    target = oslo_messaging.Target(exchange=targets.EXCHANGE, topic="pondstack_versioned_notifications.info")
    try:
        transport._send_notification(target, {}, {"event": "e"}, version=2.0, retry=0)
    finally:
        transport.cleanup()


@pytest.fixture
def connect(place: Place) -> Iterator[Callable[[str], amqp.Connection]]:
    """Connect a user past oslo.messaging."""
    made: list[amqp.Connection] = []

    def connected(user: str) -> amqp.Connection:
        login = {"userid": user, "password": place.password(user), "virtual_host": place.vhost}
        connection = amqp.Connection(f"{LOOPBACK}:{place.broker.port}", confirm_publish=True, **login)
        connection.connect()
        made.append(connection)
        return connection

    yield connected
    for connection in made:
        connection.close()


DEEDS: dict[str, Callable[[amqp.Channel, str], Any]] = {
    "consume": lambda channel, queue: channel.basic_consume(queue),
    "get": lambda channel, queue: channel.basic_get(queue),
    "declare": lambda channel, queue: channel.queue_declare(queue, durable=False, auto_delete=False),
    "delete": lambda channel, queue: channel.queue_delete(queue),
    "purge": lambda channel, queue: channel.queue_purge(queue),
    "bind": lambda channel, queue: channel.queue_bind(queue, targets.EXCHANGE, "pondstack-agent.h2"),
    "unbind": lambda channel, queue: channel.queue_unbind(queue, targets.EXCHANGE, queue),
}


@pytest.mark.parametrize("user", ["h2", "nova-h2"])
@pytest.mark.parametrize("deed", sorted(DEEDS))
def test_a_host_does_nothing_to_queues_of_others(place: Place, connect: Any, user: str, deed: str) -> None:
    place.call("compute/h1", targets.agent_target("h1"), "detach", consumer_uuid="c")
    place.call("agent/h1", targets.controller_target(), "release", host="h1")
    place.call("controller/c1", targets.agent_target("h1"), "report", epoch=1)
    queues = [f"{targets.AGENT_TOPIC}.h1", targets.CONTROLLER_TOPIC, f"{targets.NODE_TOPIC}.c1"]
    queues += [place.reply_queue(victim) for victim in ("agent/h1", "compute/h1", "controller/c1")]
    connection = connect(user)
    for queue in queues:
        with pytest.raises(AccessRefused):
            DEEDS[deed](connection.channel(), queue)


def test_an_agent_hears_no_calls_of_another_by_its_own_queue(connect: Any) -> None:
    """Binding needs rights to its own queue and to the exchange, which it has; the routing key is another's."""
    for key in ("pondstack-agent.h1", "pondstack-controller", "pondstack-agent.#", "#"):
        with pytest.raises(AccessRefused):
            connect("h2").channel().queue_bind("pondstack-agent.h2", targets.EXCHANGE, key)


PUBLISHED = (
    ("h2", targets.EXCHANGE, "pondstack-agent"),
    ("h2", f"{targets.AGENT_TOPIC}_fanout", ""),
    ("nova-h2", targets.EXCHANGE, "pondstack-controller"),
    ("nova-h2", "", "pondstack-agent.h1"),
    ("s1", targets.EXCHANGE, "pondstack-agent.h1"),
    ("s1", "", "pondstack-controller"),
    ("a1", targets.EXCHANGE, "pondstack-agent.h1"),
    ("a1", "", "pondstack-agent.h1"),
)


@pytest.mark.parametrize(("user", "exchange", "key"), PUBLISHED)
def test_a_call_that_a_role_may_not_make_is_not_even_sent(connect: Any, user: str, exchange: str, key: str) -> None:
    with pytest.raises(AccessRefused):
        connect(user).channel().basic_publish(amqp.Message("{}"), exchange=exchange, routing_key=key)


def test_nobody_makes_queues_of_other_names(connect: Any) -> None:
    names = (
        "mine",
        "reply_h9:nova-compute:1",
        "pondstack-agent.h9",
        "reply_h2:nova-compute:1:x",
        "xpondstack-agent.h2",
    )
    for user in USERS:
        for name in names:
            with pytest.raises(AccessRefused):
                connect(user).channel().queue_declare(name, durable=False, auto_delete=True)


def test_the_default_exchange_is_what_is_left(place: Place, connect: Any) -> None:
    """An agent answers through it, so that it writes into any queue; what comes so is not done: nobody signed it."""
    body = {"method": "detach", "args": {"consumer_uuid": "victim"}, "version": "1.0", "_unique_id": uuid.uuid4().hex}
    envelope = json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(body)})
    message = amqp.Message(envelope, content_type="application/json", content_encoding="utf-8")
    connect("h2").channel().basic_publish(message, exchange="", routing_key="pondstack-agent.h1")
    assert place.call("compute/h1", targets.agent_target("h1"), "detach", consumer_uuid="own") == "agent/h1"
    assert place.endpoints["agent/h1"].consumers[-1] == "own"
    assert "victim" not in place.endpoints["agent/h1"].consumers
