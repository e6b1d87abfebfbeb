"""Where calls go: exchange, topics and targets of oslo.messaging."""

from typing import Any

import oslo_messaging

EXCHANGE = "pondstack"
CONTROLLER_TOPIC = "pondstack-controller"
"""Only the leading controller consumes it."""
NODE_TOPIC = "pondstack-node"
"""Every controller consumes it, for reads and, by its name, for commands to itself."""
AGENT_TOPIC = "pondstack-agent"
WAKER_TOPIC = "pondstack-waker"
"""Of each host the process that can be called while all else of it sleeps."""
HOST_TOPICS = frozenset({AGENT_TOPIC, WAKER_TOPIC})
"""Served by a host, in its agent's name, and called by its name only."""
RPC_VERSION = "1.0"


def controller_target(server: str | None = None) -> Any:
    """Return the target of the controller; a server needs its own name."""
    return oslo_messaging.Target(exchange=EXCHANGE, topic=CONTROLLER_TOPIC, version=RPC_VERSION, server=server)


def node_target(server: str | None = None) -> Any:
    """Return the target of the controllers as such, or of one by its name."""
    return oslo_messaging.Target(exchange=EXCHANGE, topic=NODE_TOPIC, version=RPC_VERSION, server=server)


def agent_target(host: str) -> Any:
    """Return the target of one host's agent."""
    return oslo_messaging.Target(exchange=EXCHANGE, topic=AGENT_TOPIC, version=RPC_VERSION, server=host)


def waker_target(host: str) -> Any:
    """Return the target of one host's waker."""
    return oslo_messaging.Target(exchange=EXCHANGE, topic=WAKER_TOPIC, version=RPC_VERSION, server=host)
