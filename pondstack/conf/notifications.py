"""[notifications]: what pondstack tells the cloud by itself, for Masakari-style recovery of guests."""

from oslo_config import cfg

GROUP = "notifications"

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Whether the controller sends versioned notifications. What happens while this is off is never sent.",
    ),
    cfg.ListOpt(
        "topics",
        default=["pondstack_versioned_notifications"],
        help="Topics that each notification goes to, on the exchange pondstack. The bus is transport_url of "
        "[oslo_messaging_notifications], or of [DEFAULT] when that is unset.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
