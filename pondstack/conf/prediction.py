"""[prediction]: the history of instances that predictions learn from."""

from oslo_config import cfg

GROUP = "prediction"

OPTIONS: list[cfg.Opt] = [
    cfg.FloatOpt(
        "min_coverage",
        default=0.5,
        min=0.0,
        max=1.0,
        help="Share of an instance's life (0 to 1) that must have been observed for its least untouched memory to "
        "train a model or to count in a percentile.",
        mutable=True,
    ),
    cfg.IntOpt(
        "gap_seconds",
        default=900,
        min=60,
        max=86400,
        help="Longest time in seconds between two looks at a guest's memory that counts as observed; three times "
        "[telemetry] memory_seconds of the agents, or more.",
        mutable=True,
    ),
    cfg.IntOpt(
        "backfill_seconds",
        default=3600,
        min=60,
        max=7 * 86400,
        help="Seconds between two reads of Nova's API for instances whose notifications were lost; the first is when a "
        "controller begins to lead.",
    ),
    cfg.IntOpt(
        "keep_history_seconds",
        default=365 * 86400,
        min=7 * 86400,
        max=10 * 365 * 86400,
        help="Seconds for which a deleted instance stays in the history.",
        mutable=True,
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
