"""[metrics]: where a controller answers Prometheus."""

from oslo_config import cfg

GROUP = "metrics"

OPTIONS: list[cfg.Opt] = [
    cfg.HostAddressOpt(
        "bind_host",
        default="127.0.0.1",
        help="Address at which this controller answers a scrape of Prometheus, without a token: whoever reaches it "
        "reads the names of the pools and sums, but no name of a host, project or server.",
    ),
    cfg.PortOpt(
        "port",
        default=0,
        sample_default=9631,
        help="TCP port of that address; controllers on one machine need one each. 0: no scrape is answered.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
