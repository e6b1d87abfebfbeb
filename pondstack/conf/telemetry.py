"""[telemetry]: how long the controller keeps what agents measured of the guests."""

from oslo_config import cfg

GROUP = "telemetry"

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "keep_samples_seconds",
        default=24 * 3600,
        min=2 * 3600,
        max=366 * 24 * 3600,
        help="Seconds for which samples are kept as the agents sent them; never less than their period needs to be "
        "complete.",
        mutable=True,
    ),
    cfg.IntOpt(
        "keep_host_samples_seconds",
        default=2 * 3600,
        min=600,
        max=7 * 24 * 3600,
        help="Seconds for which readings of hosts' own load and memory are kept: the history that consolidation has.",
        mutable=True,
    ),
    cfg.IntOpt(
        "period_seconds",
        default=3600,
        min=60,
        max=86400,
        help="Length in seconds of the periods that samples are summed up for: minimum, mean and maximum of each.",
        mutable=True,
    ),
    cfg.IntOpt(
        "keep_periods_seconds",
        default=90 * 24 * 3600,
        min=3600,
        max=5 * 366 * 24 * 3600,
        help="Seconds for which the periods are kept.",
        mutable=True,
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
