"""Nova's versioned notifications: hints that a claim is looked at sooner, and what they say of instances. Never truth.

What is lost of them is read from Nova's API later (pondstack.controller.history).

Nova: [notifications] notification_format = versioned (or both), [oslo_messaging_notifications] driver = messagingv2.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import oslo_messaging
from oslo_config import cfg
from oslo_log import log

from pondstack.domain.errors import PondError
from pondstack.domain.history import InstanceFacts
from pondstack.telemetry.instances import facts_of

LOG = log.getLogger(__name__)
TOPIC = "versioned_notifications"
POOL = "pondstack"
EVENTS = (
    r"^instance\.(create\.error|delete\.end|shutdown\.end|power_off\.end|resize_\w+\.end|evacuate|rebuild\.error|"
    r"live_migration_\w+\.(end|error)|shelve_offload\.end)$"
)
"""After these an instance may have no claim any more where it had one."""
UNPLACED_EVENTS = r"^compute_task\.build_instances\.error$"
"""After these a server may be there for which no host was found."""
HISTORY_EVENTS = r"^instance\.(create|delete|resize_finish|resize_revert|rebuild|unshelve)\.end$"
"""These tell of a new instance, of its end, or of what it is from now on."""


class HintEndpoint:
    """Hands the UUID of an instance on; what fails is left to the reconciler's interval."""

    filter_rule = oslo_messaging.NotificationFilter(event_type=EVENTS)

    def __init__(self, hint: Callable[[str], None]) -> None:
        self._hint = hint

    def info(self, _context: Any, _publisher: str, event_type: str, payload: Mapping[str, Any], _meta: Any) -> None:
        """Take a notification."""
        data = payload.get("nova_object.data") if isinstance(payload, Mapping) else None
        uuid = data.get("uuid") if isinstance(data, Mapping) else None
        if not isinstance(uuid, str):
            LOG.debug("A notification %s without an instance is dropped", event_type)
            return
        try:
            self._hint(uuid)
        except PondError as error:
            LOG.debug("The hint %s of instance %s is dropped: %s", event_type, uuid, error)

    error = info


class UnplacedEndpoint:
    """Tells that there may be a server for which no host was found; which one, Nova's API says."""

    filter_rule = oslo_messaging.NotificationFilter(event_type=UNPLACED_EVENTS)

    def __init__(self, unplaced: Callable[[], object]) -> None:
        self._unplaced = unplaced

    def error(self, _context: Any, _publisher: str, _event_type: str, _payload: Any, _meta: Any) -> None:
        """Take a notification."""
        self._unplaced()


class HistoryEndpoint:
    """Hands on what Nova says of an instance."""

    filter_rule = oslo_messaging.NotificationFilter(event_type=HISTORY_EVENTS)

    def __init__(self, learn: Callable[[Sequence[InstanceFacts]], None]) -> None:
        self._learn = learn

    def info(self, _context: Any, _publisher: str, event_type: str, payload: Any, meta: Mapping[str, Any]) -> None:
        """Take a notification."""
        facts = facts_of(payload, str(meta.get("timestamp", "")))
        if facts is None:
            LOG.debug("A notification %s that says too little of its instance is dropped", event_type)
            return
        try:
            self._learn([facts])
        except PondError as error:
            LOG.debug("The history of instance %s waits for the next backfill: %s", facts.instance_uuid, error)


def start_listener(
    conf: cfg.ConfigOpts,
    hint: Callable[[str], None],
    learn: Callable[[Sequence[InstanceFacts]], None],
    unplaced: Callable[[], object],
) -> Any | None:
    """Return a running listener, to be stopped by the caller; `hint` gets UUIDs of instances, `learn` what they are.

    `unplaced`: called where one may have found no host.

    None when the broker refuses it, as it does when Nova's exchange is durable and ours would not be, or the other way
    round: hints are worth a warning, not a controller.
    """
    transport = oslo_messaging.get_notification_transport(conf, url=conf.nova.notification_transport_url or None)
    target = oslo_messaging.Target(topic=TOPIC, exchange=conf.nova.notification_exchange)
    endpoints = [HintEndpoint(hint), HistoryEndpoint(learn), UnplacedEndpoint(unplaced)]
    listener = oslo_messaging.get_notification_listener(transport, [target], endpoints, executor="threading", pool=POOL)
    try:
        listener.start()
    except oslo_messaging.MessagingException as error:
        LOG.warning("No hints from Nova; give [oslo_messaging_rabbit] the queue options of nova.conf: %s", error)
        return None
    return listener
