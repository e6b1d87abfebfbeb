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
