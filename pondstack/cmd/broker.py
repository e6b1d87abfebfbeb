"""`pondstack-manage broker permissions`: what a node's user of RabbitMQ may do there."""

import shlex
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from oslo_config import cfg

from pondstack.domain.errors import BadRequest
from pondstack.rpc import broker_permissions
from pondstack.rpc.identity.identity import Identity, Role
from pondstack.rpc.targets import EXCHANGE

VHOST = "pondstack"
NOVA_VHOST = "/"


def permissions(conf: cfg.ConfigOpts) -> str:
    """Return shell commands that give a user its permissions; the user and the virtual hosts must be there."""
    command = conf.command
    parties = [Identity.parse(text) for text in command.identities]
    names = {party.name for party in parties}
    if len(names) > 1:
        raise BadRequest(
            f"{', '.join(sorted(names))}: a user of the broker is of one node, or what one may do another may; give "
            "the command the services of one node at a time"
        )
    if command.nova_vhost == command.vhost and any(party.role is Role.CONTROLLER for party in parties):
        raise BadRequest(
            f"--vhost and --nova-vhost are both {command.vhost}: a controller's user would have Nova's permissions in "
            "place of its own; give pondstack a virtual host of its own"
        )
    return "\n".join(_lines(parties, command.user or names.pop(), command))


def _lines(parties: list[Identity], user: str, command: Any) -> Iterator[str]:
    found = broker_permissions.permissions_of(parties)
    query = urlencode(broker_permissions.url_options(parties[0].name))
    said = ", ".join(str(party) for party in parties)
    yield f"# {said}: transport_url = rabbit://{user}:PASSWORD@BROKER:5672/{command.vhost}?{query}"
    yield _call("set_permissions", command.vhost, user, found.configure, found.write, found.read)
    yield _call("set_topic_permissions", command.vhost, user, EXCHANGE, found.topic_write, found.topic_read)
    if any(party.role is Role.CONTROLLER for party in parties):
        yield _call("set_permissions", command.nova_vhost, user, *[broker_permissions.OF_NOVA] * 3)


def _call(verb: str, vhost: str, *words: str) -> str:
    return shlex.join(["rabbitmqctl", verb, "-p", vhost, *words])


def add_commands(verbs: Any) -> None:
    """Add the commands of the noun `broker` to a parser."""
    made = verbs.add_parser(
        "permissions", help="print rabbitmqctl commands that give a node's user the least permissions; | sh carries out"
    )
    made.add_argument(
        "identities", nargs="+", metavar="ROLE/NAME", help="what runs on the node, such as agent/compute1"
    )
    made.add_argument("--user", help="the node's user of the broker (NAME)")
    made.add_argument("--vhost", default=VHOST, help=f"virtual host of pondstack ({VHOST})")
    made.add_argument("--nova-vhost", default=NOVA_VHOST, help=f"virtual host of Nova's notifications ({NOVA_VHOST})")
    made.set_defaults(function=permissions)
