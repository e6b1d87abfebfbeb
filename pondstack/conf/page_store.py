"""Options of the page stores of one host: what uses borrowed memory. They count where [lending] transport is set."""

from typing import Any

from oslo_config import cfg

GROUP = "page_store"

OPTS = [
    cfg.StrOpt(
        "mirror_folder",
        default="/var/lib/pondstack/mirrors",
        help=(
            "Folder of the mirrors: every page in borrowed memory is in a file there as well, so that the death of a "
            "lender costs speed and never data. On local, fast storage; its content is not encrypted."
        ),
    ),
    cfg.IntOpt(
        "mirror_mib",
        default=65536,
        min=1,
        max=1073741824,
        help=(
            "So many MiB of mirrors this host has room for, all consumers of borrowed memory together; what does not "
            "fit is refused. The space of a mirror is taken at once, with some 1 % more for its table."
        ),
    ),
    cfg.StrOpt(
        "mirror_survives",
        default="process",
        choices=[
            ("process", "the death of the page store's process: the kernel has it; what it is for dies with its host"),
            ("host", "the death of the host: each batch of pages is synced to its device, which costs speed"),
        ],
        help="What a page outlives once it is in the mirror. For page stores made from now on.",
    ),
    cfg.IntOpt(
        "queue_pages",
        default=4096,
        min=64,
        max=1048576,
        help=(
            "Number of pages of 4096 bytes that a page store keeps in memory until its mirror has them; once they are "
            "that many, writes wait for the disk. For page stores made from now on."
        ),
    ),
    cfg.FloatOpt(
        "queue_seconds",
        default=5.0,
        min=0.0,
        max=600.0,
        help=(
            "How long, in seconds, a write waits for room in the mirror's queue before it is refused, and a flush for "
            "the mirror. For page stores made from now on."
        ),
    ),
    cfg.BoolOpt(
        "sealing",
        default=True,
        help=(
            "Whether pages are encrypted and authenticated before they leave this host, with a key per consumer that "
            "is never on disk. Without it a lender reads them, and a changed page is not noticed: for trusted racks "
            "only. For page stores made from now on."
        ),
    ),
    cfg.FloatOpt(
        "pages_per_second",
        default=20000.0,
        min=1.0,
        max=10000000.0,
        help=(
            "How many pages of 4 KiB per second each page store moves in the background, at most, when a lender ends "
            "or wants memory back. For page stores made from now on."
        ),
    ),
    cfg.FloatOpt(
        "leave_seconds",
        default=30.0,
        min=0.0,
        max=3600.0,
        help=(
            "So long, in seconds, pages are copied from a lender that wants its memory back to other lenders; what is "
            "left then stays in the mirror, and is copied from there. Keep it below [lending] reclaim_seconds."
        ),
    ),
    cfg.FloatOpt(
        "grow_seconds",
        default=30.0,
        min=0.1,
        max=86400.0,
        help=(
            "How often, in seconds, the controller is asked for memory that a consumer has not got yet, or has lost, "
            "at most once per heartbeat."
        ),
    ),
    cfg.FloatOpt(
        "timeout_seconds",
        default=30.0,
        min=0.1,
        max=600.0,
        help="How long, in seconds, the agent waits for the start or an answer of pondstack-page-store.",
    ),
    cfg.StrOpt(
        "launcher",
        default="",
        help=(
            "Words put before the command that starts pondstack-page-store, so that it outlives the agent's own "
            "service, as [lending] launcher does for pondstack-lender."
        ),
    ),
]


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the options by group, for the sample configuration."""
    return [(GROUP, OPTS)]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of page stores."""
    conf.register_opts(OPTS, group=GROUP)
