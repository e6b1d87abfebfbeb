"""[sizing]: the policy behind `pond:policy=auto`."""

from oslo_config import cfg

from pondstack.domain.sizing import STATIC_AUTO_PERCENT

GROUP = "sizing"

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "static_pool_percent",
        default=STATIC_AUTO_PERCENT,
        min=0,
        max=99,
        help="Share in percent of an auto VM's memory that comes from a pool, rounded down to whole slices "
        "(Pond section 6.5).",
        mutable=True,
    ),
    cfg.FloatOpt(
        "refresh_seconds",
        default=2.0,
        min=0.1,
        max=60.0,
        help="Seconds between two looks of the leader at Placement's claims on the pools, one call for each pool. "
        "nova-scheduler decides splits from the room that was seen last.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
