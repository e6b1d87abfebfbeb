"""The message brokers under test behind one shape: one node, or a cluster of three."""

import random
from pathlib import Path
from typing import Protocol

from pondstack_rack.servers import RabbitMQCluster, RabbitMQServer
from tests.robustness.databases import Mend


class Broker(Protocol):
    """One set-up. `casualty` names what strike() does, for the table."""

    casualty: str

    @property
    def ports(self) -> tuple[int, ...]:
        """Where clients reach it."""

    def start(self) -> None:
        """Start all nodes and wait until they serve."""

    def stop(self) -> None:
        """Stop all nodes."""

    def transport_url(self, vhost: str) -> str:
        """Return the oslo.messaging URL of a virtual host, made when it is missing."""

    def strike(self, rng: random.Random) -> Mend:
        """Take a node away; returns what makes the set-up whole again."""


class OneNode:
    """While it is away nobody hears anybody."""

    casualty = "restart RabbitMQ"

    def __init__(self, folder: Path) -> None:
        self._server = RabbitMQServer(folder)

    @property
    def ports(self) -> tuple[int, ...]:
        """The node's."""
        return (self._server.port,)

    def start(self) -> None:
        """Start the node."""
        self._server.start()

    def stop(self) -> None:
        """Stop the node."""
        self._server.stop()

    def transport_url(self, vhost: str) -> str:
        """Return the URL."""
        return self._server.transport_url(vhost)

    def strike(self, _rng: random.Random) -> Mend:
        """Stop it in order and start it again."""
        self._server.restart()
        return lambda: None


class ThreeNodes:
    """Quorum queues with a copy on each node; clients know all three."""

    casualty = "kill -9 RabbitMQ node"

    def __init__(self, folder: Path) -> None:
        self._cluster = RabbitMQCluster(folder)

    @property
    def ports(self) -> tuple[int, ...]:
        """All nodes'."""
        return tuple(node.port for node in self._cluster.nodes)

    def start(self) -> None:
        """Start the cluster."""
        self._cluster.start()

    def stop(self) -> None:
        """Stop the cluster."""
        self._cluster.stop()

    def transport_url(self, vhost: str) -> str:
        """Return the URL with all nodes."""
        return self._cluster.transport_url(vhost)

    def strike(self, rng: random.Random) -> Mend:
        """Kill one of the nodes; mended, it is a member again."""
        # Every second time the first one: that is where most connections are made and most queues have their leader.
        number = 0 if rng.random() < 0.5 else rng.randrange(1, len(self._cluster.nodes))
        self._cluster.kill(number)
        return lambda: self._cluster.restart(number)


BROKERS: dict[int, type[OneNode] | type[ThreeNodes]] = {1: OneNode, 3: ThreeNodes}
"""By the number of nodes."""
