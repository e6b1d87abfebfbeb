"""Options of lent memory on one host, as lender and as borrower. Off by default: `transport` is empty."""

from typing import Any

from oslo_config import cfg

GROUP = "lending"

OPTS = [
    cfg.StrOpt(
        "transport",
        default="",
        help=(
            "How this host lends and borrows memory: an entry point of the group pondstack.transports, the same in all "
            "of a rack, such as shm (hosts of one machine) or tcp (debugging only: nothing is encrypted). Empty: "
            "neither."
        ),
    ),
    cfg.StrOpt(
        "shm_folder",
        default="/run/pondstack/lenders",
        help="Folder of the lenders' sockets of the transport shm, the same for all hosts of the machine.",
    ),
    cfg.StrOpt(
        "tcp_address",
        default="127.0.0.1",
        help="Address of this host on which a lender of the transport tcp listens.",
    ),
    cfg.DictOpt(
        "transport_options",
        default={},
        help="Further options of the transport as name:value, as its own page of the documentation has them.",
    ),
    cfg.IntOpt(
        "buffer_mib",
        default=64,
        min=1,
        max=65536,
        help="Size in MiB of a buffer, in which memory is lent: the same in all of a rack (the paper's BUFF_SIZE).",
    ),
    cfg.IntOpt(
        "reserve_mib",
        default=4096,
        min=0,
        max=16777216,
        help=(
            "So many MiB of available memory (MemAvailable) are not lent, for the host itself and for guests that "
            "start or grow. Memory that mitigations have reserved, and what running guests have not touched yet, is "
            "kept beside it."
        ),
    ),
    cfg.IntOpt(
        "most_mib",
        default=0,
        min=0,
        max=16777216,
        help=(
            "So many MiB are lent at most in all, whatever is available: such as a host's share where several hosts "
            "are emulated on one machine. 0: as much as reserve_mib leaves."
        ),
    ),
    cfg.IntOpt(
        "pressure_mib",
        default=1024,
        min=0,
        max=16777216,
        help=(
            "With less available memory than so many MiB the host takes buffers back, until it has reserve_mib again. "
            "0: never by itself."
        ),
    ),
    cfg.FloatOpt(
        "reclaim_seconds",
        default=60.0,
        min=0.0,
        max=3600.0,
        help=(
            "How long, in seconds, a host that wants memory back waits for the controller to free buffers before it "
            "revokes keys on its own; the borrowers then go on from their mirrors."
        ),
    ),
    cfg.StrOpt(
        "launcher",
        default="",
        help=(
            "Words put before the command that starts pondstack-lender, so that it outlives the agent's own service: "
            "such as systemd-run --scope --quiet --collect. Empty: none; then the agent's unit needs "
            "KillMode=process."
        ),
    ),
    cfg.FloatOpt(
        "lender_timeout_seconds",
        default=30.0,
        min=0.1,
        max=600.0,
        help="How long, in seconds, the agent waits for one answer of pondstack-lender before it is taken for frozen.",
    ),
]


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the options by group, for the sample configuration."""
    return [(GROUP, OPTS)]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of lent memory."""
    conf.register_opts(OPTS, group=GROUP)
