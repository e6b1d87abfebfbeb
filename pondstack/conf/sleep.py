"""[sleep]: hosts that are suspended while they lend, and how they are woken. Who is suspended is not decided here."""

from oslo_config import cfg

GROUP = "sleep"

OPTIONS: list[cfg.Opt] = [
    cfg.FloatOpt(
        "interval_seconds",
        default=1.0,
        min=0.1,
        max=60.0,
        help="Seconds between two looks of the leader at hosts that are put to sleep, asleep or woken; without one it "
        "looks at nothing.",
    ),
    cfg.StrOpt(
        "driver",
        default="lowpower-s0",
        choices=["sz", "lowpower-s0", "s3", "off", "frozen"],
        help="How hosts sleep where `openstack memory host suspend` does not say it. frozen emulates sleep for tests, "
        "and saves nothing.",
    ),
    cfg.StrOpt(
        "deeper_driver",
        default="",
        choices=["", "s3", "off"],
        help="How a host sleeps on that lends while it sleeps, once nobody uses its memory and more than as much is "
        "free without it; only hosts of [sleep] bmc_file. It takes its memory back before. Empty: it goes on lending.",
    ),
    cfg.FloatOpt(
        "deeper_seconds",
        default=3600.0,
        min=1.0,
        max=30 * 86400.0,
        help="For how many seconds a host has to sleep before it may sleep deeper.",
    ),
    cfg.FloatOpt(
        "lend_seconds",
        default=600.0,
        min=1.0,
        max=86400.0,
        help="How long, in seconds, a host may take to lend its memory before it is suspended, until its keys are in "
        "escrow. Then it takes back what it lends, and stays awake; where only keys are missing it sleeps "
        "nevertheless.",
    ),
    cfg.FloatOpt(
        "suspend_seconds",
        default=120.0,
        min=1.0,
        max=3600.0,
        help="How long, in seconds, a host that was told to sleep may take; then it is woken, and stays awake.",
    ),
    cfg.FloatOpt(
        "confirm_seconds",
        default=15.0,
        min=0.0,
        max=3600.0,
        help="A host that sleeps without a process that can be called counts as asleep when its agent has been silent "
        "for so many seconds; more than twice [agent] heartbeat_seconds. A report that is this much younger than its "
        "sleep says that it is awake.",
    ),
    cfg.FloatOpt(
        "wake_seconds",
        default=300.0,
        min=1.0,
        max=86400.0,
        help="How long, in seconds, a host may take to wake; then its power is cycled, where [sleep] bmc_file has a "
        "BMC of it, and an audit tells.",
    ),
    cfg.FloatOpt(
        "retry_seconds",
        default=10.0,
        min=0.1,
        max=3600.0,
        help="Seconds between two calls to a host that is to wake.",
    ),
    cfg.FloatOpt(
        "stuck_seconds",
        default=900.0,
        min=1.0,
        max=86400.0,
        help="An audit warns of a host that has not come further for so many seconds on its way to sleep, or back.",
    ),
    cfg.FloatOpt(
        "call_seconds",
        default=3.0,
        min=0.1,
        max=600.0,
        help="Seconds that a host's agent or waker has for an answer while it is put to sleep or woken.",
    ),
    cfg.IntOpt(
        "doorbell_hosts",
        default=2,
        min=0,
        max=16,
        help="How many hosts that are awake (a count) are connected to the doorbell of one before it sleeps by a "
        "driver that has one, so that one of them can wake it by RDMA; in vain it is called over the bus. 0: over the "
        "bus only.",
    ),
    cfg.StrOpt(
        "bmc_file",
        default="",
        help='JSON file, mode 0600, of how hosts are reached out of band, by name: {"compute7": {"driver": '
        '"redfish", "url": "https://bmc7", "system": "/redfish/v1/Systems/1", "user": ..., "password": ...}}; other '
        'drivers: {"driver": "ipmi", "address", "user", "password"} and {"driver": "wol", "mac", "broadcast"}. '
        "Empty: hosts are called over the bus only.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
