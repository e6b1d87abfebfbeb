"""Users of the broker: one for each node of the rack, with the permissions that its services need, and no more."""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from pondstack.rpc.broker_permissions import OF_NOVA, PROCESSES, permissions_of, url_options
from pondstack.rpc.identity.identity import Identity, Role
from pondstack.rpc.targets import EXCHANGE
from pondstack_rack import config
from pondstack_rack.layout import Layout
from pondstack_rack.processes import VHOST
from pondstack_rack.servers import LOOPBACK, USER, RabbitMQServer

NOVA_VHOST = "/"
SALT_BYTES = 4


def make(layout: Layout, broker: RabbitMQServer, parties: Iterable[Identity]) -> None:
    """Make a user for each node, known by the parties' names, at once: a rabbitmqctl for each takes seconds."""
    nodes: dict[str, list[Identity]] = {}
    for party in parties:
        nodes.setdefault(party.name, []).append(party)
    file = config.write(layout.etc / "broker-users.json", json.dumps(_definitions(layout, nodes)))
    broker.rabbitmqctl("import_definitions", str(file))


def url(layout: Layout, party: Identity) -> str:
    """Return the transport_url of a service. Racks on one machine count their queues apart, by their ports."""
    options = {**url_options(party.name), "processname": f"{PROCESSES[party.role]}.{layout.sizes.port_base}"}
    return _url(layout, party.name, VHOST, options)


def forget_queues(port_base: int, folder: Path = Path("/dev/shm")) -> None:
    """Remove what oslo.messaging keeps of the names of the rack's queues (use_queue_manager)."""
    for path in folder.glob(f"*.{port_base}_qmanager"):
        path.unlink(missing_ok=True)


def notification_url(layout: Layout, controller: str) -> str:
    """Return the URL by which a controller hears Nova's notifications."""
    return _url(layout, controller, "", {})


def _url(layout: Layout, user: str, vhost: str, options: Mapping[str, str]) -> str:
    tls = {"ssl": "true", "ssl_ca_file": str(layout.authority)} if layout.authority else {}
    query = urlencode({**options, **tls}, safe="/")
    address = f"{user}:{_password(layout, user)}@{LOOPBACK}:{layout.port('rabbitmq')}"
    return f"rabbit://{address}/{vhost}{'?' if query else ''}{query}"


def _password(layout: Layout, user: str) -> str:
    return hmac.new(layout.password.encode(), user.encode(), hashlib.sha256).hexdigest()[:24]


def _definitions(layout: Layout, nodes: Mapping[str, list[Identity]]) -> dict[str, Any]:
    """Return what `pondstack-manage broker permissions` prints for these nodes, as RabbitMQ imports it."""
    # The rack's own look at queues goes by the first user.
    permissions = [{"user": USER, "vhost": VHOST, **dict.fromkeys(("configure", "write", "read"), ".*")}]
    topic_permissions: list[dict[str, str]] = []
    for name, parties in nodes.items():
        found = permissions_of(parties)
        patterns = {"configure": found.configure, "write": found.write, "read": found.read}
        permissions.append({"user": name, "vhost": VHOST, **patterns})
        keys = {"exchange": EXCHANGE, "write": found.topic_write, "read": found.topic_read}
        topic_permissions.append({"user": name, "vhost": VHOST, **keys})
        if any(party.role is Role.CONTROLLER for party in parties):
            patterns = dict.fromkeys(("configure", "write", "read"), OF_NOVA)
            permissions.append({"user": name, "vhost": NOVA_VHOST, **patterns})
    algorithm = {"hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ""}
    users = [{"name": name, "password_hash": _hashed(_password(layout, name)), **algorithm} for name in nodes]
    vhosts = [{"name": VHOST}]
    return {"vhosts": vhosts, "users": users, "permissions": permissions, "topic_permissions": topic_permissions}


def _hashed(password: str) -> str:
    salt = secrets.token_bytes(SALT_BYTES)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()
