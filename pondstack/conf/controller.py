"""[controller]: which pool devices it owns, and its time limits. All times are judged by the database's clock."""

import socket

from oslo_config import cfg

GROUP = "controller"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "name",
        default=socket.gethostname(),
        sample_default="<hostname>",
        help="Name of this controller on the message bus and in the leadership row.",
    ),
    cfg.ListOpt(
        "pool_devices",
        default=[],
        help="The pool devices of this rack, as a list of name=driver:address, for example "
        "pool0=emulated:/srv/pond/pool0. Drivers are entry points of the group pondstack.pool_devices: emulated, and "
        "dcd for dynamic capacity (CXL 3.1).",
    ),
    cfg.IntOpt(
        "free_buffer_slices",
        default=1,
        min=0,
        max=4096,
        help="Free slices per pool that Placement does not offer at the least, so that a VM start does not wait for "
        "memory that is on its way back. The buffer of a pool grows above this with what starts take meanwhile.",
        mutable=True,
    ),
    cfg.IntOpt(
        "free_buffer_max_percent",
        default=10,
        min=0,
        max=100,
        help="The most that the free buffer of a pool grows to, in percent of its slices, rounded down; never below "
        "free_buffer_slices. 0: the buffer is free_buffer_slices, whatever is measured.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "free_buffer_window_seconds",
        default=3600.0,
        min=60.0,
        max=86400.0,
        help="Seconds for which VM starts and returns of memory count when the free buffer is sized.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "free_buffer_hold_seconds",
        default=600.0,
        min=0.0,
        max=86400.0,
        help="Seconds for which a smaller free buffer has to be enough before it shrinks; it grows at once.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "reconcile_interval_seconds",
        default=10.0,
        min=0.1,
        max=3600.0,
        help="Seconds between two comparisons of ledger, Placement, agents and devices.",
    ),
    cfg.FloatOpt(
        "inventory_settle_seconds",
        default=1.0,
        min=0.0,
        max=60.0,
        help="Seconds between a change of a pool's slices and the write of its inventory to Placement; what changes "
        "meanwhile makes one write. Nova writes a guest's claim in the moments around such a change, and Placement may "
        "refuse it when the inventory is written in the same instant.",
    ),
    cfg.FloatOpt(
        "resync_interval_seconds",
        default=300.0,
        min=1.0,
        max=86400.0,
        help="Seconds after which providers, traits and aggregates in Placement are checked again without a reason.",
    ),
    cfg.FloatOpt(
        "agent_down_seconds",
        default=20.0,
        min=0.5,
        max=3600.0,
        help="Seconds without a heartbeat after which a host's agent counts as down.",
    ),
    cfg.FloatOpt(
        "unclaimed_grace_seconds",
        default=30.0,
        min=0.0,
        max=3600.0,
        help="Seconds that an allocation may be without a claim in Placement before it is released.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "assign_timeout_seconds",
        default=90.0,
        min=1.0,
        max=3600.0,
        help="Seconds after which slices that were assigned and never acknowledged are looked into, and lent buffers "
        "are asked back of their borrowers. Longer than Nova's [pondstack] attach_timeout_seconds.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "device_failed_seconds",
        default=30.0,
        min=0.0,
        max=3600.0,
        help="Seconds that a pool device may not answer before it counts as failed: its slices are quarantined and the "
        "guests that use them are told of. No new memory of it is given from the first time that it does not answer.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "report_settle_seconds",
        default=2.0,
        min=0.0,
        max=60.0,
        help="Seconds by which an agent's report must be younger than a change of the ledger to contradict it.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "agent_timeout_seconds",
        default=10.0,
        min=0.5,
        max=300.0,
        help="Seconds that a command of the controller waits for an agent.",
    ),
    cfg.IntOpt(
        "agent_calls",
        default=8,
        min=1,
        max=256,
        help="How many agents (a count of threads) are commanded at the same time.",
    ),
    cfg.BoolOpt(
        "ask_active_hosts",
        default=False,
        help="Whether hosts that are awake and have room (as [lending] reserve_mib and Placement leave it) are asked "
        "to lend when a borrow lacks memory. Off: an operator has hosts lend.",
        mutable=True,
    ),
    cfg.StrOpt(
        "sealing_keys_file",
        default="",
        help="File of the keys that seal other hosts' keys of lent memory while a lender sleeps: lines of a name and a "
        "key, as `pondstack-manage escrow key NAME` prints them. The first one seals, all open. The same on all "
        "controllers, mode 0600. Read at start. Empty: nobody can use the free memory of a lender that sleeps.",
    ),
    cfg.FloatOpt(
        "operations_keep_seconds",
        default=7 * 24 * 3600.0,
        min=3600.0,
        max=366 * 24 * 3600.0,
        help="Seconds for which the journal remembers an operation; a repetition after that is a new operation.",
        mutable=True,
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
