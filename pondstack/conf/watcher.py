"""[memory_client]: our group in watcher.conf, by which Watcher's services call the API of the memory service."""

from oslo_config import cfg

GROUP = "memory_client"

OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        "region_name",
        help="Region of the endpoint of the memory service in the catalogue (no unit); unset: the first that there is.",
    ),
    cfg.StrOpt(
        "interface",
        default="internal",
        choices=["internal", "public", "admin"],
        help="Interface of the endpoint of the memory service in the catalogue (no unit).",
    ),
    cfg.FloatOpt(
        "poll_seconds",
        default=5.0,
        min=0.01,
        max=300.0,
        help="Seconds between two looks at a plan or a host that an action or a strategy waits for.",
    ),
    cfg.FloatOpt(
        "decide_seconds",
        default=300.0,
        min=1.0,
        max=3600.0,
        help="How long, in seconds, a strategy waits until a plan is decided; then its audit fails.",
    ),
    cfg.FloatOpt(
        "action_seconds",
        default=3600.0,
        min=1.0,
        max=86400.0,
        help="How long, in seconds, an action waits until its plan or its host has ended; then it fails, and what was "
        "asked for goes on at the memory service.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group in Watcher's configuration; harmless when it is there already."""
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for oslo.config's sample generator."""
    return [(GROUP, OPTS)]
