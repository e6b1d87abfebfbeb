"""[pondstack_identity]: whom messages on the bus are signed by, and who is believed. The same group in all files."""

from oslo_config import cfg

GROUP = "pondstack_identity"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "folder",
        default="/etc/pondstack/credentials",
        help="Folder of `pondstack-manage credentials issue`: authority.pem, the certificate of the rack's authority, "
        "which is the same everywhere (while it is replaced, the file has the former one, too), and ROLE-NAME.pem with "
        "key and certificate of each service of this machine, which only that service's own user may read. A service "
        "without one does not start; the API then serves reads only.",
    ),
    cfg.FloatOpt(
        "window_seconds",
        default=60.0,
        min=5.0,
        max=3600.0,
        help="How old in seconds a message may be that is let in, and how far the hosts' clocks may differ.",
    ),
    cfg.StrOpt(
        "permissive_until",
        default="",
        regex=r"(\d{4}-\d{2}-\d{2})?\Z",
        help="Day, such as 2027-01-31, up to which (UTC) messages are let in that nobody signed, so that services of "
        "the former release may take part. Until then whoever has a password of the broker may free, fence and "
        "claim all memory of the rack; `pondstack-manage status` says so. Empty: no message is let in unsigned.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
