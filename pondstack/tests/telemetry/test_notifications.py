"""Nova's notifications over real RabbitMQ: the right ones become hints, the rest and the malformed ones do not."""

import queue
from uuid import uuid4

import oslo_messaging
import pytest
from oslo_config import cfg

from pondstack.conf import nova as nova_conf
from pondstack.domain.errors import Unavailable
from pondstack.telemetry import notifications
from pondstack.tests.telemetry.payload import PAYLOAD, UUID

pytestmark = pytest.mark.functional


def configuration(rabbitmq, exchange):
    conf = cfg.ConfigOpts()
    conf([])
    nova_conf.register_opts(conf)
    oslo_messaging.get_notification_transport(conf)  # registers oslo.messaging's options
    conf.set_override("transport_url", rabbitmq.transport_url("hints"))
    conf.set_override("notification_exchange", exchange, "nova")
    return conf


@pytest.fixture
def exchange():
    """An exchange of this test alone: on one that exists, durability must be the same."""
    return f"nova-{uuid4()}"


@pytest.fixture
def learned():
    """What of the history comes out."""
    return queue.Queue()


@pytest.fixture
def bus(rabbitmq, exchange, learned):
    """A notifier as Nova has it, and the hints that come out at our end."""
    hints = queue.Queue()

    def take(uuid):
        hints.put(uuid)
        if uuid.startswith("bad"):
            raise Unavailable("the database is away")

    conf = configuration(rabbitmq, exchange)
    listener = notifications.start_listener(conf, take, learned.put, lambda: hints.put("unplaced"))
    nova = configuration(rabbitmq, exchange)
    nova.set_override("control_exchange", exchange)
    transport = oslo_messaging.get_notification_transport(nova)
    notifier = oslo_messaging.Notifier(
        transport, "nova-compute:h1", driver="messagingv2", topics=["versioned_notifications"]
    )
    yield notifier, hints
    listener.stop()
    listener.wait()
    transport.cleanup()


def payload(uuid):
    return {"nova_object.name": "InstanceActionPayload", "nova_object.data": {"uuid": uuid}}


def test_hints(bus):
    notifier, hints = bus
    notifier.info({}, "instance.create.start", payload("not of interest"))
    notifier.info({}, "instance.delete.end", {"no": "object"})
    notifier.info({}, "instance.delete.end", payload(None))
    notifier.info({}, "instance.delete.end", payload("bad-luck"))
    wanted = str(uuid4())
    notifier.info({}, "instance.live_migration_rollback.end", payload(wanted))
    notifier.error({}, "instance.create.error", payload("in error"))
    notifier.error({}, "compute_task.migrate_server.error", payload("not built"))
    notifier.error({}, "compute_task.build_instances.error", payload("found no host"))
    assert sorted(hints.get(timeout=30) for _ in range(4)) == sorted(["bad-luck", wanted, "in error", "unplaced"])
    assert hints.empty()


def test_an_exchange_of_another_kind_costs_the_hints_only(rabbitmq, exchange, caplog):
    plain = notifications.start_listener(configuration(rabbitmq, exchange), print, print, print)
    quorum = configuration(rabbitmq, exchange)
    quorum.set_override("rabbit_quorum_queue", True, "oslo_messaging_rabbit")
    assert notifications.start_listener(quorum, print, print, print) is None
    assert "No hints from Nova" in caplog.text
    plain.stop()
    plain.wait()


def test_history(bus, learned):
    notifier, _ = bus
    notifier.info({}, "instance.create.start", PAYLOAD)
    notifier.info({}, "instance.create.end", payload(str(uuid4())))
    notifier.info({}, "instance.create.end", PAYLOAD)
    (facts,) = learned.get(timeout=30)
    assert (facts.instance_uuid, facts.memory_mib) == (UUID, 512)
    assert facts.changed_at.year >= 2026, "the moment at which it was sent"
    assert learned.empty()


def test_history_that_cannot_be_kept_is_left_to_the_backfill():
    def fail(_facts):
        raise Unavailable("the database is away")

    endpoint = notifications.HistoryEndpoint(fail)
    endpoint.info({}, "nova-compute:h1", "instance.create.end", PAYLOAD, {"timestamp": "2026-11-25 05:00:00"})
