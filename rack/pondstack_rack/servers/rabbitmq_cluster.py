"""Three RabbitMQ nodes of our own: a quorum queue has a copy on each, and goes on while two of them live."""

import secrets
import time
from pathlib import Path
from typing import Self

from pondstack_rack.daemon import DaemonFailed
from pondstack_rack.servers.base import free_port
from pondstack_rack.servers.rabbitmq import Epmd, Membership, RabbitMQServer

FORM_SECONDS = 120


class RabbitMQCluster:
    """Nodes that share one epmd and find each other by a fixed list. Stopped by pid only."""

    def __init__(self, directory: Path, size: int = 3) -> None:
        self.directory = Path(directory).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self._epmd = Epmd(self.directory, free_port())
        membership = Membership(self._epmd, secrets.token_hex(12), secrets.token_hex(12))
        self.nodes = [RabbitMQServer(self.directory / f"node{number}", membership=membership) for number in range(size)]
        for node in self.nodes:
            node.peers = tuple(peer.node for peer in self.nodes)

    def start(self) -> Self:
        """Start all nodes, together, and wait until each of them knows the others; idempotent."""
        for node in self.nodes:
            node.launch()
        ends = time.monotonic() + FORM_SECONDS
        for node in self.nodes:
            node.start()
            node.rabbitmqctl("await_online_nodes", str(len(self.nodes)), "-t", str(int(ends - time.monotonic()) + 1))
        return self

    def stop(self) -> None:
        """Shut all down in order; idempotent."""
        for node in self.nodes:
            node.stop()
        self._epmd.stop()

    def kill(self, number: int) -> None:
        """SIGKILL one node."""
        self.nodes[number].kill()

    def restart(self, number: int) -> None:
        """Start a node that was killed, and wait until it is a member again."""
        node = self.nodes[number].start()
        node.rabbitmqctl("await_online_nodes", str(len(self.nodes)), "-t", str(FORM_SECONDS))

    def transport_url(self, vhost: str = "/") -> str:
        """Return the oslo.messaging URL of a virtual host, made when it is missing: clients try the nodes in turn."""
        alive = next((node for node in self.nodes if node.running), None)
        if alive is None:
            raise DaemonFailed("rabbitmq: no node runs")
        alive.make_vhost(vhost)
        return f"rabbit://{','.join(node.address() for node in self.nodes)}/{'' if vhost == '/' else vhost}"
