"""What a user of the broker may do there: what belongs to the parties that log in as it, and calls that they may make.

Patterns of RabbitMQ: a user declares and deletes what `configure` matches, binds queues and publishes into exchanges
that `write` matches, consumes queues and binds to exchanges that `read` matches. On the exchange of all calls, a topic
exchange, routing keys count as well. Queues and exchanges are those that oslo.messaging makes; queues of replies have
the party's name by its option use_queue_manager (see url_options). Pure.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pondstack.rpc.identity.callers import TABLE
from pondstack.rpc.identity.identity import Identity, Role
from pondstack.rpc.targets import AGENT_TOPIC, CONTROLLER_TOPIC, EXCHANGE, HOST_TOPICS, NODE_TOPIC, WAKER_TOPIC

SERVED: Mapping[Role, tuple[str, ...]] = {
    Role.AGENT: (AGENT_TOPIC, WAKER_TOPIC),
    Role.CONTROLLER: (CONTROLLER_TOPIC, NODE_TOPIC),
}
"""The topics of a role's servers; the others only call."""
PROCESSES: Mapping[Role, str] = {
    Role.AGENT: "pondstack-agent",
    Role.API: "uwsgi",
    Role.COMPUTE: "nova-compute",
    Role.CONTROLLER: "pondstack-controller",
    Role.SCHEDULER: "nova-scheduler",
}
"""What oslo.messaging takes for the name of a process: its program, unless the option processname says otherwise."""
DEFAULT_EXCHANGE = "amq.default"
"""Where answers go out, by the name of the caller's queue: who answers can write into any queue, hence signatures."""
NOTIFICATIONS = r"pondstack_versioned_notifications\.[a-z]+"
"""Queues of what controllers tell the cloud ([notifications] topics)."""
OF_NOVA = "^(nova|pondstack)$"
"""Nova's exchange, and the queue of what the controllers hear of it."""
NOTHING = "^$"


@dataclass(frozen=True, slots=True)
class Permissions:
    """Patterns of one user in one virtual host; `topic_*` are of routing keys on the exchange of all calls."""

    configure: str
    write: str
    read: str
    topic_write: str
    topic_read: str


def url_options(name: str) -> dict[str, str]:
    """Return options for the query of transport_url by which queues of replies have the name of a host or service."""
    return {"use_queue_manager": "true", "hostname": name}


def permissions_of(identities: Iterable[Identity]) -> Permissions:
    """Return what a user needs in the virtual host of pondstack, as which these parties log in, and no more."""
    parties = list(identities)
    exchange = re.escape(EXCHANGE)
    answers = [re.escape(DEFAULT_EXCHANGE) for party in parties if party.role in SERVED]
    queues = [pattern for party in parties for pattern in _queues(party)]
    fanouts = [f"{re.escape(topic)}_fanout" for party in parties for topic in SERVED.get(party.role, ())]
    replies = [f"reply_{_named(party)}" for party in parties]
    notified = [NOTIFICATIONS for party in parties if party.role is Role.CONTROLLER]
    bound = [exchange] if queues else []
    return Permissions(
        configure=_any([exchange, *replies, *fanouts, *queues, *notified]),
        write=_any([exchange, *answers, *queues, *notified]),
        read=_any([*replies, *bound, *fanouts, *queues]),
        topic_write=_any([*(route for party in parties for route in _routes(party.role)), *notified]),
        topic_read=_any([*(key for party in parties for key in _keys(party)), *notified]),
    )


def _named(party: Identity) -> str:
    """Return the name that oslo.messaging's queue manager gives; several racks on one machine add to the process's."""
    return rf"{re.escape(party.name)}:{re.escape(PROCESSES[party.role])}(\.[^:]+)?:[0-9]+"


def _keys(party: Identity) -> Iterator[str]:
    """Yield routing keys of calls to a party's servers, which are names of its queues."""
    for topic in SERVED.get(party.role, ()):
        yield rf"{re.escape(topic)}(\.{re.escape(party.name)})?"


def _queues(party: Identity) -> Iterator[str]:
    yield from _keys(party)
    for topic in SERVED.get(party.role, ()):
        yield f"{re.escape(topic)}_fanout_{_named(party)}"


def _routes(role: Role) -> Iterator[str]:
    """Yield routing keys of calls that a role may make. An agent is called by its name, never all of them."""
    for topic, verbs in TABLE.items():
        if any(role in callers.roles for callers in verbs.values()):
            yield rf"{re.escape(topic)}\..+" if topic in HOST_TOPICS else rf"{re.escape(topic)}(\..+)?"


def _any(patterns: Iterable[str]) -> str:
    found = "|".join(dict.fromkeys(patterns))
    return f"^({found})$" if found else NOTHING
