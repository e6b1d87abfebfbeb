"""[ha]: the lease of leadership, and how controllers know of each other and of the broker."""

from oslo_config import cfg

GROUP = "ha"

OPTIONS: list[cfg.Opt] = [
    cfg.FloatOpt(
        "lease_seconds",
        default=1.2,
        min=0.3,
        max=30.0,
        help="Seconds after the leader's last renewal after which another controller takes over. More than three times "
        "renew_seconds. Longer than the longest stall of the database that should not cost the lead.",
    ),
    cfg.FloatOpt(
        "renew_seconds",
        default=0.3,
        min=0.05,
        max=10.0,
        help="Seconds between two renewals of an idle leader; each write of the ledger renews too.",
    ),
    cfg.FloatOpt(
        "poll_seconds",
        default=0.1,
        min=0.02,
        max=10.0,
        help="Seconds between two looks of a controller at the lease.",
    ),
    cfg.FloatOpt(
        "margin_seconds",
        default=0.1,
        min=0.0,
        max=10.0,
        help="Seconds before the end of its lease at which a leader refuses requests. Less than half of lease_seconds.",
    ),
    cfg.FloatOpt(
        "succession_seconds",
        default=5.0,
        min=0.5,
        max=60.0,
        help="Seconds for which, after a hand-over, only the chosen controller stands for the lead, and the one that "
        "handed over does not.",
    ),
    cfg.FloatOpt(
        "promotion_report_seconds",
        default=0.5,
        min=0.05,
        max=60.0,
        help="Seconds that a new leader waits for the agents' reports before it answers requests. Hosts that are "
        "silent for so long are looked at later.",
    ),
    cfg.FloatOpt(
        "drain_seconds",
        default=3.0,
        min=0.0,
        max=60.0,
        help="Seconds that a leader which hands over waits for requests under way. What takes longer is refused by the "
        "ledger and repeated by its client.",
    ),
    cfg.FloatOpt(
        "follow_seconds",
        default=0.5,
        min=0.05,
        max=60.0,
        help="Seconds between two looks of a stand-by at the journal, from which it keeps its view of the rack warm.",
    ),
    cfg.FloatOpt(
        "node_report_seconds",
        default=1.0,
        min=0.1,
        max=60.0,
        help="Seconds between two entries of a controller in the list of controllers.",
    ),
    cfg.FloatOpt(
        "node_down_seconds",
        default=5.0,
        min=0.5,
        max=3600.0,
        help="Seconds of silence after which a controller is listed as down. Several times node_report_seconds.",
    ),
    cfg.FloatOpt(
        "broker_check_seconds",
        default=1.0,
        min=0.1,
        max=60.0,
        help="Seconds between two calls of a controller to itself through the message broker. It waits twice as long "
        "for the answer.",
    ),
    cfg.FloatOpt(
        "broker_silent_seconds",
        default=10.0,
        min=0.0,
        max=3600.0,
        help="Seconds without an answer from itself after which a leader hands over to a controller that does reach "
        "the message broker; where nobody does, it goes on. One that stands by lets others go first then. At least six "
        "times broker_check_seconds and node_report_seconds. Longer than the longest stall of the broker that should "
        "not cost the lead. 0: the lead stays where it is, whoever reaches the broker.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
