"""Options of the data plane of one host, as its agent asks it. They count where [lending] transport is set."""

from typing import Any

from oslo_config import cfg, types

GROUP = "data_plane"

OPTS = [
    cfg.StrOpt(
        "folder",
        default="",
        help=(
            "Folder of pondstack-data-plane on this host, the FOLDER that it was started with: there the agent asks "
            "it to keep a part of guests' memory elsewhere. Empty: this host runs none, and gets no guests with "
            "remote memory."
        ),
    ),
    cfg.StrOpt(
        "mirror_folder",
        default="/var/lib/pondstack-data-plane/mirrors",
        help=(
            "Folder of the mirrors of guests with remote memory, the MIRRORS that pondstack-data-plane was started "
            "with: every page that leaves local memory is in a file there as well, sealed. On local, fast storage; or "
            "on a file system that hosts share and that copies files within itself: then a live migration sends no "
            "page that stays with its lender."
        ),
    ),
    cfg.IntOpt(
        "mirror_mib",
        default=65536,
        min=0,
        max=1073741824,
        help=(
            "So many MiB of mirrors this host has room for, all guests with remote memory together. The mirror of a "
            "guest is as large as its whole local node, and takes that room at once. Placement is told of it."
        ),
    ),
    cfg.StrOpt(
        "policy",
        default="mixed",
        choices=[
            ("fifo", "the page that came the longest ago"),
            ("clock", "as fifo, but a page that was accessed gets another chance"),
            ("mixed", "Clock over the few oldest pages, then FIFO (Zombieland)"),
            ("s3-fifo", "three queues: most pages leave soon, those that are wanted again stay"),
        ],
        help="Which page of a guest leaves local memory when another one has to come, for guests to come.",
    ),
    cfg.IntOpt(
        "read_ahead_pages",
        default=8,
        min=0,
        max=32,
        help="The greatest number of pages that come ahead with one fault of a guest that reads on.",
    ),
    cfg.Opt(
        "chunk_kib",
        type=types.Integer(min=4, max=64, choices=[4, 8, 16, 32, 64]),
        default=4,
        help=(
            "What is in the same chunk of so many KiB comes and leaves together, where it can; for guests to come. 4: "
            "each page by itself. More is less work per page, for guests whose accesses lie close together; others "
            "bring in pages that they do not want."
        ),
    ),
    cfg.StrOpt(
        "disk_user",
        default="libvirt-qemu",
        help=(
            "Name of the user of this host that QEMU runs as, `user` of qemu.conf: besides root, only it may "
            "open the swap disks that pondstack-data-plane serves to guests."
        ),
    ),
    cfg.FloatOpt(
        "timeout_seconds",
        default=10.0,
        min=0.1,
        max=600.0,
        help="How long, in seconds, the agent waits for an answer of pondstack-data-plane.",
    ),
    cfg.FloatOpt(
        "leave_seconds",
        default=30.0,
        min=0.1,
        max=3600.0,
        help=(
            "How long, in seconds, the agent waits until a guest's pages have left a lender that wants its memory "
            "back, before it tries again. Keep it below [lending] reclaim_seconds."
        ),
    ),
    cfg.FloatOpt(
        "grow_seconds",
        default=30.0,
        min=0.1,
        max=86400.0,
        deprecated_group="page_store",
        help=(
            "How often, in seconds, the controller is asked for memory that a guest or a swap disk has not got yet, or "
            "has lost, at most once per heartbeat."
        ),
    ),
    cfg.FloatOpt(
        "home_seconds",
        default=40.0,
        min=0.1,
        max=3600.0,
        help=(
            "How long, in seconds, a caller waits until all pages of a guest have come home, before it is told to "
            "call again. Keep it below the time that callers of the agent wait."
        ),
    ),
    cfg.StrOpt(
        "handover_address",
        default="",
        help=(
            "Numeric address of this host at which the data planes of other hosts fetch the pages of guests with "
            "remote memory that are migrated live. Each guest that leaves has a TCP port of its own meanwhile, any one "
            "that is free; all on it is encrypted. Empty: no such guest leaves this host while it runs."
        ),
    ),
    cfg.FloatOpt(
        "silence_seconds",
        default=30.0,
        min=1.0,
        max=600.0,
        help=(
            "How long, in seconds, the data plane of a guest's source and that of its destination may be silent to "
            "each other. Before the guest runs at its destination, the source has it back then."
        ),
    ),
    cfg.FloatOpt(
        "arrival_seconds",
        default=1800.0,
        min=1.0,
        max=86400.0,
        help=(
            "How long, in seconds, a guest with remote memory may take to come by a live migration, with the copy of "
            "its disks, and how long an offer of one waits for its destination."
        ),
    ),
    cfg.FloatOpt(
        "abandoned_seconds",
        default=3600.0,
        min=60.0,
        max=2592000.0,
        help=(
            "How long, in seconds, pages of a guest that has left are kept for its new host, while that does not come "
            "to fetch them. They are lost to it then, if it still lacks them. A guest that has waited so long for pages"
            " of the host that it came from is ended by its nova-compute."
        ),
    ),
]


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the options by group, for the sample configuration."""
    return [(GROUP, OPTS)]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of the data plane."""
    conf.register_opts(OPTS, group=GROUP)
