"""[metrics]: where a controller answers Prometheus."""

from oslo_config import cfg

GROUP = "metrics"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "listen",
        default="",
        sample_default="127.0.0.1:9631",
        help="Address and port, as ADDRESS:PORT (IPv6: [ADDRESS]:PORT), at which this controller answers a scrape of "
        "Prometheus, without a token: whoever reaches the address reads the names of the pools and sums, but no name "
        "of a host, project or server. Controllers on one machine need a port each. Empty: none.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
