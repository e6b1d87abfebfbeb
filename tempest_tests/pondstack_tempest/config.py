"""Options of the plugin: where the API is, what the cloud can do, and what the tests may do to it."""

from oslo_config import cfg

SERVICE_AVAILABLE = cfg.BoolOpt(
    "pondstack", default=True, help="Whether pondstack is deployed; false skips all tests of the plugin."
)

GROUP = cfg.OptGroup("pondstack", title="Options of the pondstack plugin")

API = [
    cfg.StrOpt("catalog_type", default="memory", help="Type of the service in the catalogue."),
    cfg.StrOpt(
        "endpoint_type",
        default="public",
        choices=["public", "admin", "internal", "publicURL", "adminURL", "internalURL"],
        help="Which of the service's endpoints is tested.",
    ),
    cfg.StrOpt("region", default="", help="Region of the service; empty: the one of [identity]."),
    cfg.StrOpt(
        "min_microversion",
        default="1.0",
        help="The lowest microversion to test with, X.Y. Tests that end below it are skipped.",
    ),
    cfg.StrOpt(
        "max_microversion",
        default="latest",
        help="The highest microversion to test with, X.Y or latest. Tests that begin above it are skipped.",
    ),
    cfg.IntOpt(
        "build_timeout",
        default=300,
        min=1,
        help="Seconds until a server, a slice or a lender must have reached what a test waits for.",
    ),
    cfg.IntOpt("build_interval", default=1, min=1, help="Seconds between two looks while a test waits."),
]

FEATURES = [
    cfg.BoolOpt("znuma", default=True, help="Whether guests with pool memory boot and show it as a node without CPUs."),
    cfg.BoolOpt(
        "remote_memory",
        default=False,
        help="Whether hosts lend memory to others; the tests have one lend and take back.",
    ),
    cfg.BoolOpt("swap", default=False, help="Whether guests swap to memory of other hosts. No test reads this yet."),
    cfg.BoolOpt(
        "zombie",
        default=False,
        help="Whether hosts that were emptied lend as zombies, which may be suspended while their memory serves. The "
        "tests suspend nothing.",
    ),
    cfg.BoolOpt(
        "mitigation",
        default=False,
        help="Whether guests can be taken out of their pool memory: copied by a host with a CXL pool, else by live "
        "migration, which needs two hosts.",
    ),
    cfg.BoolOpt("ha", default=False, help="Whether two controllers or more run; the tests have the lead change hands."),
]

GUEST = [
    cfg.StrOpt(
        "guest_image_ref",
        default="",
        help="Image of guests whose console is read; empty: [compute] image_ref. It boots Linux with its console on "
        "the serial port.",
    ),
    cfg.StrOpt(
        "console_node_regex",
        default=r"Initmem setup node (?P<node>\d+)",
        help="What a guest's console says of each of its NUMA nodes: a regular expression with the group `node` and, "
        "where the console tells them, the groups `cpulist` (empty for a node without CPUs) and `kib`, its size. The "
        "default is what Linux prints where it does not boot with `quiet`.",
    ),
    cfg.StrOpt(
        "alive_regex",
        default="",
        help="What a guest prints from time to time while it lives, a regular expression with the group `count`, which "
        "grows, and optionally `errors`. Empty: tests do not ask whether a guest went on undisturbed.",
    ),
    cfg.IntOpt(
        "local_mib", default=256, min=64, help="Local memory of the tests' guests in MiB; pool memory comes on top."
    ),
]

DISRUPTION = [
    cfg.StrOpt(
        "service_command",
        default="",
        help="Command that ends and starts services: it is run as `COMMAND VERB SERVICE HOST`, without a shell, as the "
        "user that runs Tempest. VERB is kill (at once, as by kill -9) or start (returns once the service serves); "
        "SERVICE is nova-compute, pondstack-agent or pondstack-controller; HOST is the name of the host, of a "
        "controller its name. It exits with 0 when it did so. Empty: tests that break services are skipped.",
    ),
    cfg.IntOpt(
        "service_command_timeout", default=180, min=1, help="Seconds that one call of service_command may take."
    ),
    cfg.ListOpt(
        "expendable_hosts",
        default=[],
        help="Hosts that tests may break and repair: their services are killed, guests are evacuated from them. "
        "Nothing else should run there. Empty: tests that break a host are skipped.",
    ),
    cfg.StrOpt(
        "lending_host",
        default="",
        help="Host that tests may have lend memory and take it back. Empty: tests of lending are skipped.",
    ),
    cfg.IntOpt("lend_mib", default=128, min=1, help="What lending_host is asked to lend, in MiB."),
]

OPTIONS: list[cfg.Opt] = [*API, *FEATURES, *GUEST, *DISRUPTION]
