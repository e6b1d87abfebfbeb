"""Our own notifications: what goes over the bus is what the samples of the documentation show."""

import json
import queue
from pathlib import Path
from uuid import uuid4

import oslo_messaging
import pytest
from oslo_config import cfg

from pondstack.conf import notifications as notifications_conf
from pondstack.ledger.failures import MemoryFailed
from pondstack.rpc.targets import EXCHANGE
from pondstack.telemetry.versioned import FailedGuests

SAMPLES = Path(__file__).resolve().parents[3] / "doc" / "notification_samples"
TOPIC = "pondstack_versioned_notifications"
EVENT = MemoryFailed(
    uuid="5b9b9c4e-6f0d-5a58-9f5e-0c1d8a3e7f11",
    allocation_uuid="d43add03-fec0-5de2-85c9-29b90d827767",
    instance_uuid="0635cccd-1e78-5473-b66a-bacffc433357",
    project_id="7f1c3f3e0b8b5a5a9a1d2a3b4c5d6e7f",
    user_id="1a2b3c4d5e6f70819a2b3c4d5e6f7081",
    host="host-1",
    pool_uuid="8a1b6f2e-3c4d-5e6f-8a9b-0c1d2e3f4a5b",
    pool_name="pool0",
    pool_mib=2048,
    guest_mib=4096,
    reason="device_failed: failure 1 of pool0: its device does not answer",
    detected_at=1795280400.0,
)


class Endpoint:
    """Takes what an operator's tool takes."""

    def __init__(self):
        self.taken = queue.Queue()

    def error(self, _context, publisher_id, event_type, payload, _meta):
        self._take("ERROR", publisher_id, event_type, payload)

    def info(self, _context, publisher_id, event_type, payload, _meta):
        self._take("INFO", publisher_id, event_type, payload)

    def _take(self, priority, publisher_id, event_type, payload):
        self.taken.put(
            {"event_type": event_type, "priority": priority, "publisher_id": publisher_id, "payload": payload}
        )


@pytest.fixture
def bus():
    """Return (configuration, what arrives at a listener) for topics of one's own on the in-memory bus."""
    stops = []

    def make(url="fake:/", **options):
        conf = cfg.ConfigOpts()
        conf([])
        notifications_conf.register_opts(conf)
        transport = oslo_messaging.get_notification_transport(conf, url=url)
        conf.set_override("transport_url", url)
        for name, value in options.items():
            conf.set_override(name, value, "notifications")
        endpoint = Endpoint()
        targets = [oslo_messaging.Target(topic=topic, exchange=EXCHANGE) for topic in conf.notifications.topics]
        if targets:
            listener = oslo_messaging.get_notification_listener(transport, targets, [endpoint], executor="threading")
            listener.start()
            stops.append(lambda: (listener.stop(), listener.wait(), transport.cleanup()))
        return conf, endpoint.taken

    yield make
    for stop in stops:
        stop()


def test_the_sample_is_what_is_sent(bus):
    conf, taken = bus()
    tell = FailedGuests(conf, "controller-1")
    tell(EVENT)
    assert taken.get(timeout=30) == json.loads((SAMPLES / "guest-memory_failed.json").read_text())
    tell.close()


def test_it_goes_to_the_topics_that_the_operator_names(bus):
    topic = f"recovery-{uuid4()}"
    conf, taken = bus(topics=[topic])
    tell = FailedGuests(conf, "controller-1")
    tell(EVENT)
    assert taken.get(timeout=30)["event_type"] == "pondstack.guest.memory_failed"
    tell.close()


@pytest.mark.parametrize("off", [{"enabled": False}, {"topics": []}])
def test_off_is_off(bus, off):
    conf, taken = bus()
    for name, value in off.items():
        conf.set_override(name, value, "notifications")
    silent = FailedGuests(conf, "controller-1")
    silent(EVENT)
    conf.clear_override("enabled", "notifications")
    conf.clear_override("topics", "notifications")
    tell = FailedGuests(conf, "controller-2")
    tell(EVENT)
    assert taken.get(timeout=30)["publisher_id"] == "pondstack-controller:controller-2"
    tell.close()
    # Only now: closing would lose what the in-memory bus has not delivered yet.
    silent.close()


def test_every_sample_is_of_a_notification_that_there_is():
    mitigations = {f"mitigation-{kind}.json" for kind in ("start", "end", "error")}
    transitions = {f"plan-{kind}.json" for kind in ("start", "end", "error")}
    transitions |= {f"host_sleep-{kind}.json" for kind in ("start", "asleep", "lost", "end", "error")}
    assert {path.name for path in SAMPLES.iterdir()} == {"guest-memory_failed.json", *mitigations, *transitions}


@pytest.mark.functional
def test_over_real_rabbitmq(bus, rabbitmq):
    conf, taken = bus(rabbitmq.transport_url(f"told-{uuid4().hex[:8]}"))
    tell = FailedGuests(conf, "controller-1")
    tell(EVENT)
    assert taken.get(timeout=60)["payload"]["pondstack_object.data"]["event_uuid"] == EVENT.uuid
    tell.close()
