"""Options of tiering by the kernel (TPP) on one host. Nothing is touched that is not configured here."""

from typing import Any

from oslo_config import cfg

GROUP = "tiering"

LEAVE = ("leave", "as the kernel has it")

OPTS = [
    cfg.StrOpt(
        "demotion",
        default="leave",
        choices=[
            LEAVE,
            ("off", "cold pages of a full node are swapped out or dropped"),
            ("on", "cold pages of a full node are moved to the next lower memory tier, before anything is swapped"),
        ],
        help="What the kernel does with cold pages when a local node runs full (/sys/kernel/mm/numa/demotion_enabled).",
    ),
    cfg.StrOpt(
        "promotion",
        default="leave",
        choices=[
            LEAVE,
            ("off", "pages stay where they are"),
            ("on", "hot pages are moved up to local memory"),
            ("with_balancing", "the same, and pages follow their threads between local nodes"),
        ],
        help="What the kernel does with hot pages of lower memory tiers (kernel.numa_balancing: 0, 2 and 3).",
    ),
    cfg.IntOpt(
        "promote_limit_mib_per_second",
        default=0,
        min=0,
        max=1048576,
        help=(
            "At most so many MiB per second are promoted to each local node "
            "(kernel.numa_balancing_promote_rate_limit_MBps); 0: as the kernel has it."
        ),
    ),
    cfg.IntOpt(
        "watermark_scale_factor",
        default=0,
        min=0,
        max=3000,
        help=(
            "Headroom of free memory that the kernel keeps on each node for new and promoted pages, a number of "
            "ten-thousandths of the node between two watermarks (vm.watermark_scale_factor; the kernel's own default "
            "is 10); 0: as the kernel has it."
        ),
    ),
    cfg.StrOpt(
        "interleave",
        default="",
        regex=r"^$|^[0-9]{1,3}:[0-9]{1,3}$",
        help=(
            "Weights N:M of memory with the policy weighted interleave: N pages on each local node for M pages on each "
            "pool node, 1 to 255 each, such as 5:1 (/sys/kernel/mm/mempolicy/weighted_interleave). It concerns "
            "processes that ask for the policy, no others. Empty: as the kernel has it."
        ),
    ),
]


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the options by group, for the sample configuration."""
    return [(GROUP, OPTS)]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of tiering."""
    conf.register_opts(OPTS, group=GROUP)
