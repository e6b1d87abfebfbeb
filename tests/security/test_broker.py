"""An attacker with a password of the broker, and what he can have done: on a real RabbitMQ, past oslo.messaging."""

import json
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import kombu
import oslo_messaging
import pytest
from oslo_config import cfg

from pondstack.domain.errors import NotFound, PondError, Refused
from pondstack.rpc import targets
from pondstack_rack.wait import wait_until
from tests.fixtures.identities import Everybody, Identities

pytestmark = pytest.mark.functional

SECONDS = 30
AGENT_QUEUE = f"{targets.AGENT_TOPIC}.h1"


class Agent:
    """The victim's agent: what it was made to do."""

    target = oslo_messaging.Target(version="1.0")

    def __init__(self) -> None:
        self.done: list[str] = []
        self.entered = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    @oslo_messaging.expected_exceptions(NotFound)
    def detach(self, _context: Any, *, consumer_uuid: str, operation_id: str = "") -> bool:
        """Release a guest's memory."""
        self.entered.set()
        assert self.go_on.wait(SECONDS)
        self.done.append(consumer_uuid)
        if consumer_uuid == "unknown":
            raise NotFound(f"nothing of it is here {operation_id}")
        return True


class Attacker:
    """Reads and writes queues by the broker's own protocol."""

    def __init__(self, url: str) -> None:
        self.connection = kombu.Connection(url.replace("rabbit://", "amqp://", 1))
        self.channel = self.connection.channel()

    def publish(self, queue: str, body: dict[str, Any]) -> None:
        """Put a message into a queue through the default exchange, as oslo.messaging has it."""
        envelope = {"oslo.version": "2.0", "oslo.message": json.dumps(body)}
        with self.connection.Producer(channel=self.channel) as producer:
            producer.publish(envelope, exchange="", routing_key=queue, serializer="json")

    def close(self) -> None:
        self.connection.release()


@pytest.fixture
def place(tmp_path, rabbitmq) -> Iterator[tuple[Everybody, Agent, Attacker]]:
    url = rabbitmq.transport_url(f"attack-{uuid.uuid4().hex[:8]}")
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    bus = Identities(tmp_path).everybody(conf, url)
    agent = Agent()
    server = bus.server(targets.agent_target("h1"), [agent])
    server.start()
    attacker = Attacker(url)
    yield bus, agent, attacker
    attacker.close()
    agent.go_on.set()
    server.stop()
    server.wait()
    bus.cleanup()


def detach(bus: Everybody, consumer: str) -> Any:
    """Have the host's own nova-compute call."""
    client = bus.client(targets.agent_target("h1")).prepare(timeout=SECONDS)
    return client.call({}, "detach", consumer_uuid=consumer)


def forged(consumer: str, context: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a call as oslo.messaging puts it on the wire; nobody waits for its answer."""
    return {
        "method": "detach",
        "args": {"consumer_uuid": consumer},
        "version": "1.0",
        "_unique_id": uuid.uuid4().hex,
        **{f"_context_{key}": value for key, value in (context or {}).items()},
    }


def test_what_he_publishes_into_an_agents_queue_is_not_done(place) -> None:
    bus, agent, attacker = place
    attacker.publish(AGENT_QUEUE, forged("victim"))
    attacker.publish(AGENT_QUEUE, forged("victim", {"pondstack": {"at": 1.0}}))
    assert detach(bus, "own") is True  # what came before it has been judged by now
    assert agent.done == ["own"]


def test_what_he_recorded_is_done_once(place, monkeypatch) -> None:
    bus, agent, attacker = place
    recorded: list[dict[str, Any]] = []
    real = type(bus.as_whom("compute/h1")).sign

    def record(border: Any, request: Any) -> Any:
        seal = real(border, request)
        recorded.append(seal.to_wire())
        return seal

    monkeypatch.setattr(type(bus.as_whom("compute/h1")), "sign", record)
    assert detach(bus, "own") is True
    for _ in range(3):
        attacker.publish(AGENT_QUEUE, forged("own", {"pondstack": recorded[0]}))
        attacker.publish(AGENT_QUEUE, forged("victim", {"pondstack": recorded[0]}))
    assert detach(bus, "last") is True
    assert agent.done == ["own", "last"]


def reply_queue(attacker: Attacker, bus: Everybody) -> str:
    """Return where the caller waits for its answers, which everybody on the broker may look up."""
    name = str(bus.transport._driver._reply_q)
    attacker.channel.queue_declare(name, passive=True)
    return name


@pytest.mark.parametrize("answer", [{"result": False}, {"failure": "not there"}, {"result": {"pondstack": {}}}])
def test_an_answer_that_he_makes_up_is_not_taken(place, answer) -> None:
    """He answers first; the true answer is thrown away by then, and the caller knows that it has none."""
    bus, agent, attacker = place
    detach(bus, "first")  # from now on the caller has its queue
    agent.entered.clear()
    agent.go_on.clear()
    errors: list[BaseException] = []

    def call() -> None:
        try:
            detach(bus, "own")
        except (PondError, oslo_messaging.MessagingException) as error:
            errors.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    assert agent.entered.wait(SECONDS)
    waiters = bus.transport._driver._waiter.waiters
    assert wait_until(lambda: bool(waiters._queues), SECONDS)
    [message_id] = list(waiters._queues)
    body = {
        "ending": True,
        "_msg_id": message_id,
        "_unique_id": uuid.uuid4().hex,
        "result": None,
        "failure": None,
        **answer,
    }
    if "failure" in answer:
        remote = {"class": "NotFound", "module": "pondstack.domain.errors", "message": "x", "tb": [], "args": ["x"]}
        body |= {"failure": json.dumps(remote | {"kwargs": {}})}
    attacker.publish(reply_queue(attacker, bus), body)
    caller.join(SECONDS)
    agent.go_on.set()
    assert [type(error) for error in errors] == [Refused], errors


def test_errors_of_the_agent_are_the_agents(place) -> None:
    bus, _agent, _attacker = place
    with pytest.raises(NotFound, match="nothing of it is here"):
        detach(bus, "unknown")
