"""oslo.messaging set-up that all components share.

The caller has initialised oslo.service's threading backend (or runs inside Nova, which has done it).
"""

from typing import Any

import oslo_messaging
from oslo_config import cfg
from oslo_messaging import opts as oslo_messaging_opts
from oslo_utils import importutils

EXCHANGE = "pondstack"
CONTROLLER_TOPIC = "pondstack-controller"
"""Only the leading controller consumes it."""
NODE_TOPIC = "pondstack-node"
"""Every controller consumes it, for reads and, by its name, for commands to itself."""
AGENT_TOPIC = "pondstack-agent"
RPC_VERSION = "1.0"
RABBIT = "oslo_messaging_rabbit"
OVER_RDMA = "pond+"
"""Before the scheme of the broker's URL: the driver of pondstack_rdma.messaging, which goes on over that broker."""
REMOTE_ERRORS = ["pondstack.domain.errors"]


def get_transport(conf: cfg.ConfigOpts, url: str | None = None) -> Any:
    """Return an RPC transport that lets pondstack's errors through; `url` overrides transport_url.

    Where [rpc] transport is set (controllers and agents), calls go over RDMA to servers that have it, too.

    Quorum queues, which outlive a broker restart, are options of the file: [oslo_messaging_rabbit]
    rabbit_quorum_queue and rabbit_transient_quorum_queue.
    """
    _register_own(conf)
    if "rpc" in conf and conf.rpc.transport:
        parsed = oslo_messaging.TransportURL.parse(conf, url)
        if not parsed.transport.startswith(OVER_RDMA):
            url = OVER_RDMA + str(parsed)
    return oslo_messaging.get_rpc_transport(conf, url=url, allowed_remote_exmods=REMOTE_ERRORS)


def get_controller_transport(conf: cfg.ConfigOpts) -> Any:
    """Return a controller's transport: unless the file says otherwise it takes one request at a time from the broker.

    What the broker has pushed to a process that is killed or paused waits there until its client calls again.
    """
    groups = dict(oslo_messaging_opts.list_opts())
    conf.register_opts(groups[RABBIT], group=RABBIT)
    conf.set_default("rabbit_qos_prefetch_count", 1, group=RABBIT)
    return get_transport(conf)


def _register_own(conf: cfg.ConfigOpts) -> None:
    """Register what oslo.messaging 18.3 reads from `conf` at each call, but registers with the global cfg.CONF only."""
    for name in ("metrics", "tracing"):
        module = importutils.try_import(f"oslo_messaging._{name}.client")
        group = f"oslo_messaging_{name}"
        if module is not None:
            conf.register_opts(getattr(module, group), group=group)


def controller_target(server: str | None = None) -> Any:
    """Return the target of the controller; a server needs its own name."""
    return oslo_messaging.Target(exchange=EXCHANGE, topic=CONTROLLER_TOPIC, version=RPC_VERSION, server=server)


def node_target(server: str | None = None) -> Any:
    """Return the target of the controllers as such, or of one by its name."""
    return oslo_messaging.Target(exchange=EXCHANGE, topic=NODE_TOPIC, version=RPC_VERSION, server=server)


def agent_target(host: str) -> Any:
    """Return the target of one host's agent."""
    return oslo_messaging.Target(exchange=EXCHANGE, topic=AGENT_TOPIC, version=RPC_VERSION, server=host)
