"""Options of pondstack-agent: who the host is, where it keeps its state, which pools it reaches, what it measures."""

import socket
from typing import Any

from oslo_config import cfg

from pondstack.conf import data_plane, lending, power, rpc, tiering

AGENT, EMULATED, CXL, TELEMETRY = "agent", "emulated", "cxl", "telemetry"
ALL, LIBVIRT, SYNTHETIC = "all", "libvirt", "synthetic"
"""[telemetry] guests."""

DEFAULT_OPTS = [
    cfg.HostDomainOpt(
        "host",
        default=socket.gethostname(),
        sample_default="<hostname>",
        help=(
            "Name of this host: the hypervisor hostname that Nova shows, which is also the name of the host's "
            "Placement provider and of the agent's message queue."
        ),
    ),
]

AGENT_OPTS = [
    cfg.StrOpt(
        "state_dir",
        default="/var/lib/pondstack/agent",
        help=(
            "Folder where the agent keeps what must survive it: attachments, operations, pending releases, the highest "
            "epoch. One folder per host; on a local, durable file system."
        ),
    ),
    cfg.StrOpt(
        "user",
        default="pondstack",
        help=(
            "User that the agent becomes, without any capability, when it is started as root. What needs root is done "
            "by small processes that it starts before (the privsep groups). Empty, or a user that the host does not "
            "have: it stays root, and its log says so."
        ),
    ),
    cfg.ListOpt(
        "drivers",
        default=["emulated"],
        help="Pool drivers of this host: names of entry points of the group pondstack.host_pools.",
    ),
    cfg.FloatOpt(
        "heartbeat_seconds",
        default=5.0,
        min=0.1,
        max=300.0,
        help="Time in seconds between two reports to the controller. Keep it well under its agent_down_seconds.",
    ),
    cfg.FloatOpt(
        "controller_timeout_seconds",
        default=20.0,
        min=0.1,
        max=600.0,
        help="How long, in seconds, one call waits for the controller's answer before the agent answers Unavailable.",
    ),
    cfg.FloatOpt(
        "unanswered_attach_seconds",
        default=60.0,
        min=1.0,
        max=3600.0,
        help=(
            "An attach that a crash or a lost answer left half-way is undone after this many seconds, unless its "
            "caller repeats it or detaches before."
        ),
    ),
    cfg.IntOpt(
        "operation_memory_seconds",
        default=3600,
        min=60,
        max=7 * 24 * 3600,
        help=(
            "For how many seconds a finished operation is remembered, so that a late duplicate of it changes nothing. "
            "Longer than any message can stay in the message bus."
        ),
    ),
    cfg.IntOpt(
        "mitigation_headroom_mib",
        default=1024,
        min=0,
        max=16 * 1024 * 1024,
        help=(
            "Local memory in MiB that stays free when pool pages of a guest are moved to local memory. Without so much "
            "the mitigation is refused."
        ),
    ),
    cfg.IntOpt(
        "mitigation_chunk_mib",
        default=128,
        min=1,
        max=65536,
        help=(
            "Pages in MiB that a mitigation moves at once; it can be aborted between two such chunks. For each of them "
            "the kernel empties page lists of all CPUs. Also what moves at once when pages of a guest that stays are "
            "moved back to the pool after slices went offline."
        ),
    ),
    cfg.StrOpt(
        "libvirt_uri",
        default="qemu:///system",
        help=(
            "Where libvirt keeps this host's guests. What it keeps of one whose pool pages were moved to local memory "
            "is bound to local memory there, which needs Python's libvirt bindings."
        ),
    ),
    cfg.IntOpt(
        "rpc_threads",
        default=16,
        min=1,
        max=1000,
        help="Number of requests (a count of threads) that the agent serves at the same time.",
    ),
]

EMULATED_OPTS = [
    cfg.ListOpt(
        "device_paths",
        default=[],
        help=(
            "Folders of the emulated pool devices that this host reaches, made by `pondstack-manage device create`. "
            "All hosts of a device must see the same folder."
        ),
    ),
]


CXL_OPTS = [
    cfg.DictOpt(
        "pools",
        default={},
        help=(
            "The CXL pool devices that this host reaches, as <serial of the CXL device>:<serial of the pool>,... The "
            "first is the number that `cxl list -M` shows (decimal or 0x hexadecimal), the same on every host of the "
            "device; the second is what the controller's driver of the pool device calls it."
        ),
    ),
    cfg.ListOpt(
        "permission_table",
        default=[],
        help=(
            "Folders of the emulated pool devices whose permission tables this host reads before it uses a slice: for "
            "CXL devices that cannot guard each access themselves, as in tests. Empty: the devices guard themselves."
        ),
    ),
    cfg.StrOpt(
        "backing",
        default="kmem",
        choices=[
            ("kmem", "memory of a node of this host's kernel, without CPUs, that guests are bound to"),
            (
                "devdax",
                "character devices that guests map, which change their host without a copy",
            ),
        ],
        help=(
            "What slices of guests are on this host. A guest keeps what it has until its slices are given back. devdax "
            "needs a nova-compute that knows it, [pondstack] emulator in its nova.conf, and a libvirt whose guests may "
            "open /dev/dax*; the same on all hosts of a pool."
        ),
    ),
    cfg.IntOpt(
        "offline_attempts",
        default=5,
        min=1,
        max=1000,
        help="How often (a count) the memory of an allocation is tried to be taken offline before it is called stuck.",
    ),
    cfg.FloatOpt(
        "offline_timeout_seconds",
        default=30.0,
        min=0.1,
        max=3600.0,
        help=(
            "How long, in seconds, one attempt may take, in which the kernel moves away what others have in the "
            "memory. Guests do not wait for it."
        ),
    ),
    cfg.StrOpt(
        "sanitize",
        default="device",
        choices=[
            ("device", "the pool device zeroes slices that were given back"),
            ("host", "the agent writes zeros over each slice that it took offline, before it gives it back"),
        ],
        help="Who zeroes slices before their next owner gets them. The device checks all the same.",
    ),
    cfg.ListOpt(
        "system_cgroups",
        default=["system.slice", "user.slice", "init.scope"],
        help=(
            "Cgroups (v2, paths below /sys/fs/cgroup) of what is no guest. Those that exist are confined to local "
            "nodes (cpuset.mems) before pool memory comes online. Empty: none."
        ),
    ),
    cfg.ListOpt(
        "guest_units",
        default=["libvirtd.service", "virtqemud.service"],
        help=(
            "Services of systemd that start guests. Those that run must have a memory policy of the local nodes, which "
            "guests inherit, before pool memory comes online. Empty: none."
        ),
    ),
    cfg.BoolOpt(
        "make_partition",
        default=True,
        help=(
            "Whether the agent itself confines to local memory what was given no pool memory, as far as that needs no "
            "restart of a service; false: it only looks, and `pondstack-partition make` is an operator's."
        ),
    ),
]

TELEMETRY_OPTS = [
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Whether the memory of this host's guests is looked at from outside, and the controller told of it.",
    ),
    cfg.StrOpt(
        "guests",
        default=ALL,
        choices=[
            (ALL, "each process of this machine that root or libvirt has started with -uuid"),
            (LIBVIRT, "those of this host's own libvirt only, where hosts see each other's processes"),
            (SYNTHETIC, "no process: a made-up trace for each guest with pool memory here, marked as such"),
        ],
        help="Which guests are looked at.",
    ),
    cfg.StrOpt(
        "trace_file",
        default="",
        help=(
            "JSON file of the traces to play for guests = synthetic, by instance or project: lists of [age in seconds, "
            "percent untouched]. Read anew when it changes. A guest without one has a generated trace. Empty: all have."
        ),
    ),
    cfg.StrOpt(
        "host_trace_file",
        default="",
        help=(
            "JSON file of the CPU loads to play in place of hosts' own, by the name of the host: lists of [seconds "
            "since the file was written, percent], for hosts that share one machine's CPUs. Their readings say that "
            "they are made up. A host that is not in it has its own load. Empty: all have."
        ),
    ),
    cfg.StrOpt(
        "libvirt_pid_dir",
        default="/run/libvirt/qemu",
        help="Folder in which this host's libvirt keeps the pid files of its guests; for guests = libvirt.",
    ),
    cfg.FloatOpt(
        "batch_seconds",
        default=60.0,
        min=1.0,
        max=300.0,
        help="Time in seconds between two batches to the controller. Readings in between are folded into one sample.",
    ),
    cfg.FloatOpt(
        "memory_seconds",
        default=300.0,
        min=1.0,
        max=86400.0,
        help="Time in seconds between two looks at how much of each guest's memory was never touched.",
    ),
    cfg.StrOpt(
        "libvirt_uri",
        default="qemu:///system",
        help="Where libvirt is asked what guests have committed, by their balloon drivers. Empty: it is not asked.",
    ),
    cfg.FloatOpt(
        "access_seconds",
        default=1800.0,
        min=0.0,
        max=86400.0,
        help=(
            "Time in seconds between two scans of which memory each guest uses. A scan clears the accessed bits that "
            "the kernel's reclaim goes by, too. 0: none."
        ),
    ),
    cfg.FloatOpt(
        "access_window_seconds",
        default=60.0,
        min=5.0,
        max=600.0,
        help=(
            "Time in seconds for which a guest under KVM is watched at a scan, by the kernel's DAMON: what it used "
            "within that time is hot. Half as long is needed before. One guest is watched after the other."
        ),
    ),
    cfg.FloatOpt(
        "access_cpu_percent",
        default=1.0,
        min=0.01,
        max=100.0,
        help=(
            "What all access scans together may take, in percent of one CPU. A scan that would take more is skipped, "
            "and its sample says so."
        ),
    ),
    cfg.FloatOpt(
        "load_seconds",
        default=60.0,
        min=1.0,
        max=3600.0,
        help=(
            "Time in seconds between two looks at how busy this host's CPUs are, what of its memory is free, and how "
            "many CPUs each guest uses. Consolidation goes by it."
        ),
    ),
    cfg.FloatOpt(
        "counters_seconds",
        default=1.0,
        min=0.0,
        max=60.0,
        help="Time in seconds between two readings of the hardware counters of each guest's vCPUs. 0: none.",
    ),
]


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the options by group, for the sample configuration."""
    return [
        ("DEFAULT", DEFAULT_OPTS),
        (AGENT, AGENT_OPTS),
        (EMULATED, EMULATED_OPTS),
        (CXL, CXL_OPTS),
        (TELEMETRY, TELEMETRY_OPTS),
    ]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of the agent."""
    for group, options in list_opts():
        conf.register_opts(options, group=None if group == "DEFAULT" else group)
    data_plane.register_opts(conf)
    lending.register_opts(conf)
    power.register_opts(conf)
    rpc.register_opts(conf)
    tiering.register_opts(conf)
