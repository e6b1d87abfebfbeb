"""MariaDB, RabbitMQ and the schemas of all services."""

import sys
from collections.abc import Callable

from pondstack_rack.layout import Layout, program
from pondstack_rack.processes import run
from pondstack_rack.servers import MariaDBServer, RabbitMQServer

NOTIFICATIONS_KEPT = 100


def mariadb(layout: Layout) -> MariaDBServer:
    """Return the rack's database server."""
    return MariaDBServer(layout.root / "mariadb", layout.port("mariadb"), tls=layout.certificate("mariadb"))


def rabbitmq(layout: Layout) -> RabbitMQServer:
    """Return the rack's message broker."""
    return RabbitMQServer(
        layout.root / "rabbitmq",
        layout.port("rabbitmq"),
        layout.port("epmd"),
        layout.port("rabbitmq-dist"),
        tls=layout.certificate("rabbitmq"),
    )


def limit_notifications(broker: RabbitMQServer) -> None:
    """Keep few of Nova's notifications: each listener has a queue of its own; nobody reads the shared one."""
    limit = f'{{"max-length": {NOTIFICATIONS_KEPT}}}'
    broker.rabbitmqctl("set_policy", "notifications", "^versioned_notifications", limit, "--apply-to", "queues")


def schema_steps(layout: Layout) -> dict[str, Callable[[], None]]:
    """Return what makes each service's schema; each repeats without harm."""
    etc = layout.etc

    def keystone() -> None:
        manage = [program("keystone-manage"), "--config-file", str(etc / "keystone.conf")]
        run(layout, "keystone-manage", [*manage, "db_sync"])

    def placement() -> None:
        run(
            layout,
            "placement-manage",
            [program("placement-manage"), "--config-file", str(etc / "placement.conf"), "db", "sync"],
        )

    def glance() -> None:
        run(
            layout,
            "glance-manage",
            [program("glance-manage"), "--config-file", str(etc / "glance-api.conf"), "db_sync"],
        )

    def neutron() -> None:
        manage = [program("neutron-db-manage"), "--config-file", str(etc / "neutron.conf")]
        run(layout, "neutron-db-manage", [*manage, "upgrade", "heads"])

    def nova() -> None:
        argv = [sys.executable, "-m", "pondstack_rack.services.nova_schema", str(etc / "nova.conf")]
        run(layout, "nova-manage", argv, {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "true"})

    def pondstack() -> None:
        run(
            layout,
            "pondstack-manage",
            [program("pondstack-manage"), "--config-file", str(etc / "pondstack.conf"), "db", "sync"],
        )

    return {
        "keystone": keystone,
        "placement": placement,
        "glance": glance,
        "neutron": neutron,
        "nova": nova,
        "pondstack": pondstack,
    }
