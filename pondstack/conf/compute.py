"""[pondstack] in nova.conf, compute's side: the virt driver. Shares group and transport_url with the scheduler."""

from oslo_config import cfg

from pondstack.conf import scheduler
from pondstack.conf.scheduler import GROUP

OPTS = [
    cfg.IntOpt(
        "attach_timeout_seconds",
        default=60,
        min=5,
        max=600,
        help=(
            "How long, in seconds, a guest's start waits for its pool memory while the host's agent answers but the "
            "controller does not. After that the build fails on this host and Nova tries another one."
        ),
    ),
    cfg.IntOpt(
        "shortage_wait_seconds",
        default=30,
        min=0,
        max=600,
        help=(
            "How long, in seconds, a guest's start waits for slices that are on their way back, when too few are free. "
            "A shortage that slices on their way back do not end fails at once. 0: every shortage does, and Nova tries "
            "another host. Keep it under the agents' [agent] unanswered_attach_seconds."
        ),
    ),
    cfg.IntOpt(
        "agent_monitor_seconds",
        default=10,
        min=2,
        max=120,
        help=(
            "How long, in seconds, the virt driver waits for a sign of life of pondstack-agent; then it counts as down "
            "and the build fails on this host. Two tries of half this time each."
        ),
    ),
    cfg.IntOpt(
        "agent_start_timeout_seconds",
        default=300,
        min=0,
        max=3600,
        help=(
            "How long, in seconds from the start of nova-compute, guests that it starts again wait for an agent or a "
            "controller that does not answer: after a boot of the host with [DEFAULT] "
            "resume_guests_state_on_host_boot, and for reboots and starts that the boot interrupted. All guests "
            "together wait no longer, and nova-compute serves no request meanwhile. After that such a guest goes to "
            "ERROR, with the reason as its fault. 0: they wait no longer than a build."
        ),
    ),
    cfg.StrOpt(
        "emulator",
        default="",
        help=(
            "Path of the pondstack-qemu wrapper, the QEMU that guests with pool memory get; the same path on every "
            "host. Empty: QEMU's own, which is right for pool memory that is a NUMA node of the host."
        ),
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group in nova's configuration; harmless when it is there already."""
    scheduler.register_opts(conf)
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for oslo.config's sample generator."""
    return [(GROUP, OPTS)]
