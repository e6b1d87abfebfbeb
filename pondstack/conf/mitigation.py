"""[mitigation]: limits of what takes pool memory away from guests. Who is mitigated is not decided here."""

from oslo_config import cfg

GROUP = "mitigation"

OPTIONS: list[cfg.Opt] = [
    cfg.FloatOpt(
        "interval_seconds",
        default=1.0,
        min=0.1,
        max=60.0,
        help="Seconds between two looks of the leader at the mitigations that are under way; without one it looks at "
        "nothing.",
    ),
    cfg.IntOpt(
        "max_per_host",
        default=1,
        min=1,
        max=64,
        help="How many mitigations (a count) are under way on one host at a time; others wait for their turn.",
    ),
    cfg.IntOpt(
        "max_per_rack",
        default=8,
        min=1,
        max=1024,
        help="How many mitigations (a count) are under way in the rack at a time; others wait for their turn.",
    ),
    cfg.FloatOpt(
        "idle_seconds",
        default=300.0,
        min=1.0,
        max=86400.0,
        help="How long, in seconds, a mitigation that has not begun to copy waits while Nova works on the server; then "
        "it is given up.",
    ),
    cfg.FloatOpt(
        "copy_seconds",
        default=1800.0,
        min=1.0,
        max=86400.0,
        help="How long, in seconds, a host may take to copy a guest's pool memory; then the mitigation is undone.",
    ),
    cfg.FloatOpt(
        "view_seconds",
        default=10.0,
        min=0.0,
        max=600.0,
        help="How long, in seconds, the leader waits until all schedulers know that a server gets no pool memory any "
        "more, before it asks Nova to migrate it. More than twice [pondstack] snapshot_interval_seconds of nova.conf; "
        "with less a server may be migrated in vain, and is tried again.",
    ),
    cfg.FloatOpt(
        "retry_seconds",
        default=60.0,
        min=1.0,
        max=86400.0,
        help="Seconds after which a live migration that Nova gave up is asked for again, and as much more each time.",
    ),
    cfg.IntOpt(
        "retries",
        default=3,
        min=0,
        max=100,
        help="How many times (a count) a copy or a live migration that failed is tried again before the mitigation is "
        "undone.",
    ),
    cfg.FloatOpt(
        "stuck_seconds",
        default=900.0,
        min=1.0,
        max=86400.0,
        help="An audit warns of a mitigation that has not come further for so many seconds, copying apart.",
    ),
    cfg.FloatOpt(
        "keep_seconds",
        default=90 * 24 * 3600.0,
        min=60.0,
        max=10 * 365 * 24 * 3600.0,
        help="For how many seconds mitigations that have ended are kept.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
