"""Pondstack's own versioned notifications: what they say, and sending them by oslo.messaging's notifier.

Each has a sample in doc/notification_samples, which a test compares. A field is never removed or changed within a major
version; a new one raises the minor version.
"""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import oslo_messaging
from oslo_config import cfg
from oslo_messaging import opts as oslo_messaging_opts

from pondstack.ledger.failures import MemoryFailed
from pondstack.rpc.targets import EXCHANGE

MEMORY_FAILED = "pondstack.guest.memory_failed"
DRIVER = "messagingv2"
FOR_EVER = -1


def memory_failed(event: MemoryFailed) -> dict[str, Any]:
    """Return the payload that tells of a guest whose pool memory failed."""
    data = asdict(event)
    moment = time_text(data.pop("detected_at"))
    return payload(
        "GuestMemoryFailedPayload",
        "1.0",
        {"event_uuid": data.pop("uuid"), **data, "detected_at": moment},
    )


def time_text(seconds: float) -> str:
    """Return seconds since the epoch as in payloads."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def payload(name: str, version: str, data: dict[str, Any]) -> dict[str, Any]:
    """Return data as a payload of this name and version."""
    return {
        "pondstack_object.name": name,
        "pondstack_object.namespace": "pondstack",
        "pondstack_object.version": version,
        "pondstack_object.data": data,
    }


class Publisher:
    """Sends notifications. With [notifications] enabled off it tells nobody."""

    def __init__(self, conf: cfg.ConfigOpts, controller: str) -> None:
        """`controller`: our name, for the publisher's."""
        self._notifier: Any = None
        if conf.notifications.enabled and conf.notifications.topics:
            conf.register_opts(dict(oslo_messaging_opts.list_opts())[None])
            conf.set_default("control_exchange", EXCHANGE)
            self._notifier = oslo_messaging.Notifier(
                oslo_messaging.get_notification_transport(conf),
                f"pondstack-controller:{controller}",
                driver=DRIVER,
                topics=conf.notifications.topics,
                retry=FOR_EVER,
            )

    def publish(self, event_type: str, data: dict[str, Any], *, error: bool) -> None:
        """Come back once the broker has the message, however long that takes; of priority ERROR, else INFO."""
        if self._notifier is not None:
            send = self._notifier.error if error else self._notifier.info
            send({}, event_type, data)

    def close(self) -> None:
        """Close the connections."""
        if self._notifier is not None:
            self._notifier.transport.cleanup()


class FailedGuests(Publisher):
    """Tells of failed guests."""

    def __call__(self, event: MemoryFailed) -> None:
        """Come back once the broker has the message, however long that takes."""
        self.publish(MEMORY_FAILED, memory_failed(event), error=True)
