"""oslo.messaging set-up that all components share.

The caller has initialised oslo.service's threading backend (or runs inside Nova, which has done it).
"""

from typing import Any

import oslo_messaging
from oslo_config import cfg
from oslo_utils import importutils

EXCHANGE = "pondstack"
CONTROLLER_TOPIC = "pondstack-controller"
AGENT_TOPIC = "pondstack-agent"
RPC_VERSION = "1.0"
REMOTE_ERRORS = ["pondstack.domain.errors"]


def get_transport(conf: cfg.ConfigOpts, url: str | None = None) -> Any:
    """Return an RPC transport that lets pondstack's errors through; `url` overrides transport_url.

    Quorum queues, which outlive a broker restart, are options of the file: [oslo_messaging_rabbit]
    rabbit_quorum_queue and rabbit_transient_quorum_queue.
    """
    _register_own(conf)
    return oslo_messaging.get_rpc_transport(conf, url=url, allowed_remote_exmods=REMOTE_ERRORS)


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


def agent_target(host: str) -> Any:
    """Return the target of one host's agent."""
    return oslo_messaging.Target(exchange=EXCHANGE, topic=AGENT_TOPIC, version=RPC_VERSION, server=host)
