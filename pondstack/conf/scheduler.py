"""[pondstack] in nova.conf, scheduler's side: request filter, filter, weigher. compute.py has the virt driver's."""

from oslo_config import cfg

from pondstack.domain.remote_share import MAX_REMOTE_PERCENT
from pondstack.domain.swap_disk import MAX_SWAP_PERCENT

GROUP = "pondstack"

OPTS = [
    cfg.StrOpt(
        "transport_url",
        secret=True,
        default=None,
        help="Message bus of pondstack, as a URL like nova's transport_url. Unset: nova's own bus.",
    ),
    cfg.StrOpt(
        "default_policy",
        default="none",
        choices=[
            ("none", "they are all local"),
            ("auto", "they are treated as with pond:policy=auto: the service decides how much pool memory they get"),
        ],
        help=(
            "What servers of flavors without pond: extra specs are treated as. pond: specs of a flavor always win, "
            "pond:policy=local among them; then what is set for the project (openstack memory project set), then "
            "pond:default_policy in the metadata of the host aggregates that the request is bound to (its availability "
            "zone's), then this option. Servers that cannot have pool memory (NUMA topology, pinned CPUs, huge pages, "
            "passed-through devices, encryption) are all local, and none is refused for it."
        ),
    ),
    cfg.IntOpt(
        "max_remote_percent",
        default=MAX_REMOTE_PERCENT,
        min=1,
        max=90,
        help=(
            "How much of a flavor's RAM pond:remote_mb and pond:disk_mb may be together, in percent. A guest whose "
            "working set does not fit into the rest waits for other hosts again and again. The same in nova.conf of "
            "nova-api and nova-scheduler."
        ),
    ),
    cfg.IntOpt(
        "max_swap_percent",
        default=MAX_SWAP_PERCENT,
        min=1,
        max=1000,
        help=(
            "How large the disk of pond:swap_mb may be, in percent of a flavor's RAM. All of it has a mirror on the "
            "guest's host. The same in nova.conf of nova-api and nova-scheduler."
        ),
    ),
    cfg.IntOpt(
        "split_timeout_ms",
        default=500,
        min=10,
        max=10_000,
        help=(
            "How long, in milliseconds, a request waits for a newer view of the rack where the present one would "
            "refuse it, or does not know an instance that is moved. All others are decided at once."
        ),
    ),
    cfg.FloatOpt(
        "first_view_seconds",
        default=10.0,
        min=0.0,
        max=60.0,
        help=(
            "How long, in seconds from a scheduler process's first request on, requests that may get pool memory wait "
            "for its first view of the rack. Without one, VMs are placed all local: that is logged and counted, never "
            "an error. Requests for flavors without pond: specs wait half a second at most, unless default_policy is "
            "auto."
        ),
    ),
    cfg.FloatOpt(
        "split_max_age_seconds",
        default=600.0,
        min=1.0,
        max=86400.0,
        help=(
            "Splits are decided from a view of the rack up to this age in seconds, while no controller answers. When "
            "it is older, VMs are placed all local; that is logged and counted. A VM with pool memory starts "
            "only once a controller gives it slices."
        ),
    ),
    cfg.FloatOpt(
        "split_retry_seconds",
        default=5.0,
        min=0.0,
        max=300.0,
        help="Seconds until nova-scheduler tells the controller again what VMs were placed with, after a failure.",
    ),
    cfg.FloatOpt(
        "snapshot_interval_seconds",
        default=2.0,
        min=0.1,
        max=60.0,
        help=(
            "How often, in seconds, each scheduler process refreshes its view of the rack in the background: hosts and "
            "pools, their room, and the splits of instances."
        ),
    ),
    cfg.FloatOpt(
        "snapshot_max_age_seconds",
        default=30.0,
        min=1.0,
        max=600.0,
        help=(
            "A view older than this many seconds is stale. It is used all the same, as there is none better; splits "
            "that were decided from it are counted and say so."
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
