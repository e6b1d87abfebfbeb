"""[nova]: Nova's notifications, which make a reconciliation come sooner."""

from oslo_config import cfg

GROUP = "nova"

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "notifications",
        default=True,
        help="Whether to listen to Nova's versioned notifications. They are hints; without them only the interval "
        "counts. The queue options of [oslo_messaging_rabbit] must be those of nova.conf.",
    ),
    cfg.StrOpt(
        "notification_transport_url",
        default="",
        secret=True,
        help="Message bus of Nova's notifications; empty: transport_url of this file.",
    ),
    cfg.StrOpt(
        "notification_exchange",
        default="nova",
        help="Exchange of Nova's notifications: control_exchange of nova.conf.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
