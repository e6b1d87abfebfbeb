"""[pondstack] in nova.conf, scheduler's side: request filter, filter, weigher. compute.py has the virt driver's."""

from oslo_config import cfg

GROUP = "pondstack"

OPTS = [
    cfg.StrOpt(
        "transport_url",
        secret=True,
        default=None,
        help="Message bus of pondstack, as a URL like nova's transport_url. Unset: nova's own bus.",
    ),
    cfg.IntOpt(
        "split_timeout_ms",
        default=500,
        min=10,
        max=10_000,
        help=(
            "Budget, in milliseconds, for pondstack-controller to say how to split a VM's memory. When it is over, "
            "the VM is placed all local: that is logged and counted, never an error."
        ),
    ),
    cfg.FloatOpt(
        "split_retry_seconds",
        default=5.0,
        min=0.0,
        max=300.0,
        help=(
            "After three failures in a row the controller is not asked for this many seconds; VMs are placed all local "
            "at once meanwhile."
        ),
    ),
    cfg.FloatOpt(
        "snapshot_interval_seconds",
        default=2.0,
        min=0.1,
        max=60.0,
        help="How often, in seconds, each scheduler process refreshes its view of pools and hosts in the background.",
    ),
    cfg.FloatOpt(
        "snapshot_max_age_seconds",
        default=30.0,
        min=1.0,
        max=600.0,
        help=(
            "A snapshot older than this many seconds is not trusted: hosts then fail for VMs with pool memory and pass "
            "for all others."
        ),
    ),
    cfg.StrOpt(
        "pool_anti_affinity",
        default="strict",
        choices=[
            ("strict", "anti-affinity: no host is chosen otherwise; soft-anti-affinity: preferred"),
            ("prefer", "preferred for both"),
            ("off", "pools are not looked at"),
        ],
        help=(
            "Whether the members of an anti-affinity server group get their pool memory from different pool devices, "
            "so that a device that fails affects one of them. With strict, a rack of one pool has room for one such "
            "member with a fixed share, and further ones of policy auto are all local."
        ),
    ),
    cfg.FloatOpt(
        "pool_anti_affinity_weight_multiplier",
        default=1.0,
        help=(
            "Multiplier (no unit) of PondAntiAffinityWeigher, which prefers hosts with a pool that fewer members of "
            "the anti-affinity group use. 0: off. An aggregate's metadata of the same name overrides it."
        ),
    ),
    cfg.FloatOpt(
        "pool_weight_multiplier",
        default=1.0,
        help=(
            "Multiplier (no unit) of PondWeigher. Positive: VMs with pool memory prefer hosts whose best pool keeps a "
            "comfortable free buffer, others prefer hosts without a pool when all else is equal. 0: off. An "
            "aggregate's metadata of the same name overrides it."
        ),
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group in nova's configuration; harmless when it is there already."""
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for oslo.config's sample generator."""
    return [(GROUP, OPTS)]
