"""[qos]: the monitor that looks for VMs that pool memory hurts, the control group, re-prediction."""

from oslo_config import cfg

from pondstack.domain.qos import QosMode, Unknown

GROUP = "qos"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "mode",
        default=QosMode.DRY_RUN.value,
        choices=[str(mode) for mode in QosMode],
        help="What the monitor does: off (nothing), dry_run (it decides, and keeps its decisions with their evidence), "
        "on (it has VMs mitigated, too). `openstack memory allocation mitigate` works in each mode.",
        mutable=True,
    ),
    cfg.IntOpt(
        "interval_seconds",
        default=60,
        min=1,
        max=86400,
        help="Seconds between two rounds of the monitor.",
    ),
    cfg.IntOpt(
        "fresh_seconds",
        default=900,
        min=10,
        max=86400,
        help="Age in seconds up to which a look at a guest's memory counts; three times [telemetry] memory_seconds of "
        "the agents, or more. A VM without a younger one is unobserved, and is not judged.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "touched_percent",
        default=5.0,
        min=0.0,
        max=100.0,
        help="Share in percent of a VM's pool memory that it may touch; beyond it the VM is over-predicted. A guest's "
        "kernel keeps some of its own data on each node, about 1.6 % for its list of pages.",
        mutable=True,
    ),
    cfg.IntOpt(
        "touched_mib",
        default=64,
        min=0,
        max=1024 * 1024,
        help="MiB of pool memory that a VM may touch in any case.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "pdm_percent",
        default=5.0,
        min=0.0,
        max=100.0,
        help="Slowdown in percent that a VM tolerates whose split does not say (pond:pdm of its flavor).",
        mutable=True,
    ),
    cfg.StrOpt(
        "unknown_sensitivity",
        default=Unknown.MITIGATE.value,
        choices=[str(item) for item in Unknown],
        help="What becomes of an over-predicted VM whose counters no model knows, as on hosts without a PMU: mitigate "
        "(who is not known to be insensitive is taken for sensitive, as at its start) or leave.",
        mutable=True,
    ),
    cfg.IntOpt(
        "host_per_hour",
        default=6,
        min=0,
        max=1000,
        help="Mitigations that may begin on one host within an hour, counted with those that operators asked for.",
        mutable=True,
    ),
    cfg.IntOpt(
        "rack_per_hour",
        default=30,
        min=0,
        max=10000,
        help="Mitigations that may begin in the rack within an hour, counted likewise.",
        mutable=True,
    ),
    cfg.IntOpt(
        "host_at_a_time",
        default=1,
        min=1,
        max=100,
        help="Number of mitigations on one host at a time, the next one included.",
        mutable=True,
    ),
    cfg.IntOpt(
        "rack_at_a_time",
        default=4,
        min=1,
        max=1000,
        help="Number of mitigations in the rack at a time, the next one included.",
        mutable=True,
    ),
    cfg.ListOpt(
        "quiet_hours",
        default=[],
        help="Times of the day, as 08:00-18:00 in UTC, in which the monitor begins no mitigation; over midnight where "
        "the end is before the begin. Operators may mitigate all the same.",
        mutable=True,
    ),
    cfg.IntOpt(
        "keep_decisions_seconds",
        default=90 * 86400,
        min=86400,
        max=5 * 366 * 86400,
        help="Seconds for which decisions, and tenants' figures of performance, are kept. Those of over-predicted VMs "
        "train models: not less than [model] window_seconds.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "control_share_percent",
        default=0.0,
        min=0.0,
        max=100.0,
        help="Share in percent of new `auto` VMs that stay all local as a control group, to compare with "
        "(`openstack memory qos report`); 0: none.",
        mutable=True,
    ),
    cfg.StrOpt(
        "control_seed",
        default="pondstack",
        help="Text that the instances' UUIDs are hashed with to choose the control group: another one, another group.",
        mutable=True,
    ),
    cfg.IntOpt(
        "repredict_seconds",
        default=3600,
        min=60,
        max=7 * 86400,
        help="Seconds between two rounds that predict again what long-lived VMs leave untouched.",
    ),
    cfg.IntOpt(
        "repredict_after_seconds",
        default=86400,
        min=600,
        max=365 * 86400,
        help="Age in seconds from which on a VM is predicted again.",
        mutable=True,
    ),
    cfg.FloatOpt(
        "repredict_margin_percent",
        default=10.0,
        min=0.0,
        max=100.0,
        help="Share in percent of a VM's memory that is taken off what it leaves untouched when it is predicted again, "
        "at its age of repredict_after_seconds; it becomes smaller with the root of the age, to a quarter.",
        mutable=True,
    ),
    cfg.BoolOpt(
        "take_at_move",
        default=False,
        help="Whether an `auto` VM that is moved cold (not resized) gets the split that was predicted again, in place "
        "of the one that it has. Nothing is moved for it. A VM that was mitigated stays all local.",
        mutable=True,
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
