"""[consolidation]: how plans are decided that empty idle hosts, and what limits their being carried out."""

from oslo_config import cfg

from pondstack.domain.consolidation_limits import MOST_HOSTS

GROUP = "consolidation"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "underload",
        default="static",
        choices=["static", "average", "lifetime"],
        help="How an underloaded host is found: by its newest load; by the average of the last readings; as static, "
        "but hosts whose servers are predicted to end soon are left to empty themselves.",
    ),
    cfg.StrOpt(
        "overload",
        default="static",
        choices=["static", "mad", "iqr", "local-regression"],
        help="How an overloaded host is found: by overload_percent; by a threshold that leaves the more room the more "
        "its load varies (median absolute deviation, interquartile range); by where its load leads to.",
    ),
    cfg.StrOpt(
        "selection",
        default="least-memory",
        choices=["least-memory", "least-load", "random", "longest-lifetime"],
        help="Which servers leave an overloaded host first.",
    ),
    cfg.StrOpt(
        "placement",
        default="best-fit",
        choices=["best-fit", "worst-fit", "lifetime"],
        help="Which of the hosts on which a server fits gets it: the one with the least left of what is scarcest, with "
        "the most, or the one whose last server is predicted to end no earlier.",
    ),
    cfg.StrOpt(
        "afterwards",
        default="suspend",
        choices=["keep", "lend", "suspend"],
        help="What becomes of a host that was emptied: it stays awake and disabled, lends its memory, or lends it and "
        "sleeps.",
    ),
    cfg.FloatOpt(
        "underload_percent",
        default=25.0,
        min=0.0,
        max=100.0,
        help="CPU load in percent up to which a host is underloaded.",
    ),
    cfg.FloatOpt(
        "overload_percent",
        default=80.0,
        min=1.0,
        max=100.0,
        help="CPU load in percent that no host is to reach by a plan, and from which on one is overloaded.",
    ),
    cfg.FloatOpt(
        "safety",
        min=0.0,
        max=10.0,
        help="Factor of mad, iqr or local-regression, no unit. Unset: the paper's, 2.5, 1.5 or 1.2.",
    ),
    cfg.IntOpt(
        "readings",
        default=10,
        min=3,
        max=1000,
        help="How many readings of a host's load (a count) the algorithms that look at its history need.",
    ),
    cfg.FloatOpt(
        "metric_seconds",
        default=600.0,
        min=1.0,
        max=86400.0,
        help="Age in seconds from which on a figure is too old: its host takes no part in plans then.",
    ),
    cfg.FloatOpt(
        "working_set_seconds",
        default=7200.0,
        min=1.0,
        max=7 * 86400.0,
        help="Age in seconds from which on a working set is too old: all of the server's local memory counts then.",
    ),
    cfg.FloatOpt(
        "working_set_percent",
        default=30.0,
        min=1.0,
        max=100.0,
        help="Percent of the working set of a server with remote memory that has to fit into a host's free memory.",
    ),
    cfg.FloatOpt(
        "worth_seconds",
        default=3600.0,
        min=0.0,
        max=30 * 86400.0,
        help="A server that is predicted to end within so many seconds is not worth a migration; for underload = "
        "lifetime.",
    ),
    cfg.IntOpt(
        "least_awake",
        default=1,
        min=0,
        max=MOST_HOSTS,
        help="How many hosts (a count) stay awake and enabled at least. `openstack memory consolidation set` "
        "sets it at run time.",
    ),
    cfg.FloatOpt(
        "reserve_percent",
        default=0.0,
        min=0.0,
        max=100.0,
        help="Percent of the VCPUs and of the memory that may be claimed of awake hosts which plans keep free: they "
        "empty no host that is needed for it, and wake sleeping ones, the least borrowed first, where less is free. "
        "With auto on, hosts are woken ahead of need so. 0: nothing is kept free. `openstack memory consolidation "
        "set` sets it at run time.",
    ),
    cfg.IntOpt(
        "most_migrations",
        default=200,
        min=0,
        max=1000000,
        help="How many servers (a count) one plan migrates at most.",
    ),
    cfg.IntOpt(
        "most_emptied",
        default=10,
        min=0,
        max=1000000,
        help="How many hosts (a count) one plan empties at most.",
    ),
    cfg.IntOpt(
        "most_woken",
        default=10,
        min=0,
        max=1000000,
        help="How many hosts (a count) one plan wakes at most for servers for which Nova found no host.",
    ),
    cfg.FloatOpt(
        "unplaced_seconds",
        default=60.0,
        min=0.0,
        max=3600.0,
        help="Seconds between two looks, while hosts sleep, for new servers for which Nova found no host; a "
        "notification of Nova's brings one forward. A plan is made then that wakes sleeping hosts on which they would "
        "fit: proposed, or with auto on applied. 0: none is made.",
    ),
    cfg.StrOpt(
        "power_profile",
        default="hp",
        choices=["hp", "dell", "configured"],
        help="Whose share of power an awake and a sleeping host takes, for estimates, of controllers and API: the "
        "paper's two machines (Zombieland, Table 3), which has no figure of lowpower-s0, or power_percent.",
    ),
    cfg.DictOpt(
        "power_percent",
        default={},
        help="For power_profile = configured: percent, from 0 to 100, of host_watts that a host takes when it is awake "
        "and idle, and asleep by each driver that was measured, such as `idle:48,lowpower-s0:33,s3:4`.",
    ),
    cfg.FloatOpt(
        "host_watts",
        default=250.0,
        min=0.0,
        max=100000.0,
        help="Power in watts of a host at full load, for estimates.",
    ),
    cfg.FloatOpt(
        "copy_mib_per_second",
        default=200.0,
        min=1.0,
        max=1000000.0,
        help="How fast, in MiB per second, a live migration is taken to copy; for overload = local-regression.",
    ),
    cfg.FloatOpt(
        "plan_seconds",
        default=900.0,
        min=1.0,
        max=86400.0,
        help="For how many seconds after it was decided a plan may be applied.",
    ),
    cfg.IntOpt(
        "migrations_at_a_time",
        default=2,
        min=1,
        max=1024,
        help="How many live migrations of plans (a count) are under way at a time.",
    ),
    cfg.IntOpt(
        "migrations_per_hour",
        default=60,
        min=0,
        max=1000000,
        help="How many live migrations (a count) consolidation begins within an hour; drains are not counted.",
    ),
    cfg.FloatOpt(
        "idle_seconds",
        default=600.0,
        min=1.0,
        max=86400.0,
        help="For how many seconds an action waits for a server that Nova works on; then it has failed.",
    ),
    cfg.IntOpt(
        "tries",
        default=2,
        min=1,
        max=100,
        help="How many times (a count) an action is tried.",
    ),
    cfg.FloatOpt(
        "interval_seconds",
        default=2.0,
        min=0.1,
        max=60.0,
        help="Seconds between two looks of the leader at the plans that are under way; without one it looks at "
        "nothing.",
    ),
    cfg.BoolOpt(
        "auto",
        default=False,
        help="Whether plans are made and applied without an operator, every auto_seconds. `openstack memory "
        "consolidation freeze` stops it at once.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "auto_seconds",
        default=1800.0,
        min=10.0,
        max=7 * 86400.0,
        help="Seconds between two plans that are made without an operator.",
    ),
    cfg.ListOpt(
        "quiet_hours",
        default=[],
        help="Times of day (UTC, HH:MM-HH:MM, which may pass midnight) in which no plan is made without an operator.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "keep_seconds",
        default=90 * 24 * 3600.0,
        min=60.0,
        max=10 * 365 * 24 * 3600.0,
        help="For how many seconds plans that have ended, or were never applied, are kept.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
