"""[database]: oslo.db's own options, the servers of a cluster, and how long each is waited for."""

import copy

from oslo_config import cfg
from oslo_db import options

GROUP = "database"
POOL_SIZE = 20
"""Connections that stay open: as many transactions as a busy leader has at a time. With oslo.db's own 5 it opens one
for most of them, for which PyMySQL reads all certificates of the system."""

OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        "hosts",
        default=[],
        help="Servers of one cluster (host:port, [IPv6]:port), tried in turn in place of the host and port in "
        "connection: all Galera nodes, or a PostgreSQL primary and its standbys. One that fails, is read only, in "
        "recovery or not ready is left for the next. Give each controller the same order. Empty: the server in "
        "connection only.",
    ),
    cfg.FloatOpt(
        "connect_seconds",
        default=2.0,
        min=0.1,
        max=60.0,
        help="Seconds that a server may take to accept a connection before the next one is tried.",
    ),
    cfg.FloatOpt(
        "answer_seconds",
        default=5.0,
        min=0.1,
        max=600.0,
        help="Seconds that a server may take for each answer before it counts as frozen and its connections as lost. "
        "Longer than Galera needs to notice a dead node.",
    ),
    cfg.FloatOpt(
        "transaction_retry_seconds",
        default=15.0,
        min=0.0,
        max=120.0,
        help="For how many seconds a transaction that met a deadlock or a lost connection is tried again before the "
        "caller is told that the database is unavailable.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    options.set_defaults(conf, max_pool_size=POOL_SIZE)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    theirs = copy.deepcopy(options.database_opts)
    cfg.set_defaults(theirs, max_pool_size=POOL_SIZE)
    return [(GROUP, [*theirs, *OPTIONS])]
