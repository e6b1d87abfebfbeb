"""[database]: oslo.db's own options and how long a transaction is tried again."""

from oslo_config import cfg
from oslo_db import options

GROUP = "database"

OPTIONS: list[cfg.Opt] = [
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
    conf.register_opts(options.database_opts, group=GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, [*options.database_opts, *OPTIONS])]
