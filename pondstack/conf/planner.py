"""[planner]: replays of the planner as jobs of the leading controller, and what they may take."""

from oslo_config import cfg

GROUP = "planner"

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Whether the controllers take jobs of the planner. A job runs in a process of its own beside the leader, "
        "one at a time and at the lowest priority. Off: new ones are refused, and those that wait go on waiting.",
        mutable=True,
    ),
    cfg.IntOpt(
        "seconds",
        default=4 * 3600,
        min=1,
        max=7 * 86400,
        help="Seconds, of CPU time and by the clock, after which a job is killed and has failed.",
    ),
    cfg.IntOpt(
        "memory_mib",
        default=4096,
        min=64,
        max=1024 * 1024,
        help="Address space in MiB that the process of a job may take.",
    ),
    cfg.IntOpt(
        "most_parts",
        default=4000,
        min=1,
        max=1000000,
        help="Parts (a count) that a job may have: each is the search for the least memory with one seed, policy, "
        "topology, pool size and pool share, or the energy of one system.",
    ),
    cfg.IntOpt(
        "most_waiting",
        default=16,
        min=1,
        max=10000,
        help="Jobs (a count) that may wait or run at a time.",
    ),
    cfg.IntOpt(
        "tries",
        default=2,
        min=1,
        max=100,
        help="How many times (a count) a job is begun. The next leader begins it again when a controller ended while "
        "it ran; one that was begun so often has failed then.",
    ),
    cfg.FloatOpt(
        "keep_seconds",
        default=90 * 24 * 3600.0,
        min=60.0,
        max=10 * 365 * 24 * 3600.0,
        help="For how many seconds jobs that have ended, and their reports, are kept.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
