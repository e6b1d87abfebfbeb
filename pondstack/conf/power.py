"""[power] of pondstack-agent: how its host sleeps."""

from typing import Any

from oslo_config import cfg

GROUP = "power"

OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        "launcher",
        default="",
        help="Words before the command line of pondstack-waker, such as `systemd-run --scope --quiet --collect "
        "--slice=pondstack.slice`: it needs a control group that is not frozen. Empty: none.",
    ),
    cfg.StrOpt(
        "waker_folder",
        default="",
        help="Folder of pondstack-waker's socket, where it is a service of its own. Empty: `waker` in [agent] "
        "state_dir, and the agent starts it.",
    ),
    cfg.FloatOpt(
        "waker_timeout_seconds",
        default=30.0,
        min=1.0,
        max=600.0,
        help="Seconds that pondstack-waker has to start, and for an answer.",
    ),
    cfg.FloatOpt(
        "linger_seconds",
        default=1.0,
        min=0.0,
        max=60.0,
        help="Seconds between the answer that the host will sleep, and its sleep: the answer has to leave the host.",
    ),
    cfg.BoolOpt(
        "doorbell",
        default=True,
        help="Whether pondstack-waker lends a page, by the transport of [lending], into which another host, connected "
        "before this one slept, writes a token to wake it (lowpower-s0). Without it, or without a transport, this host "
        "is woken over the bus, or out of band. Off: this host rings for no other one either.",
    ),
    cfg.FloatOpt(
        "doorbell_pause_seconds",
        default=0.25,
        min=0.01,
        max=1.0,
        help="Seconds between two looks of pondstack-waker at its doorbell; each wakes a CPU from its idle state.",
    ),
    cfg.FloatOpt(
        "doorbell_seconds",
        default=5.0,
        min=0.1,
        max=60.0,
        help="Seconds that a connection of this host to another one's doorbell may take, and a ring.",
    ),
    cfg.StrOpt("sys_folder", default="/sys", help="Where the kernel's sysfs is mounted."),
    cfg.StrOpt(
        "cgroup_folder",
        default="/sys/fs/cgroup",
        help="Root of the control groups (version 2) that lowpower-s0 freezes, but for those with the processes of "
        "pondstack-lender and pondstack-waker.",
    ),
    cfg.StrOpt("off_command", default="systemctl poweroff", help="Command that switches the host off; empty: none."),
    cfg.ListOpt(
        "frozen_commands",
        default=[],
        help="Regular expressions of command lines: the processes that the driver frozen stops, which emulates sleep "
        "for tests and saves nothing. Empty: the host does not emulate it.",
    ),
]


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTS)]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTS, group=GROUP)
