"""[model]: prediction models, what they may risk and what their training may take."""

from oslo_config import cfg

GROUP = "model"

OPTIONS: list[cfg.Opt] = [
    cfg.FloatOpt(
        "over_prediction_percent",
        default=4.0,
        min=0.1,
        max=50.0,
        help="Most over-predictions in percent of the instances: those that touch more memory than the model of "
        "untouched memory said and so use the pool (OP of Pond section 4.4). target_percent may leave less.",
    ),
    cfg.FloatOpt(
        "false_positive_percent",
        default=2.0,
        min=0.1,
        max=50.0,
        help="Most false positives in percent of the workloads: those that the model of latency sensitivity calls "
        "insensitive and that are slowed down by more than they tolerate (FP of Pond section 4.4). target_percent may "
        "leave less.",
    ),
    cfg.FloatOpt(
        "target_percent",
        default=98.0,
        min=50.0,
        max=99.9,
        help="Instances in percent that are to stay within their tolerated slowdown (TP of Pond section 4.4): the "
        "mispredictions of all models together stay below 100 minus this (Eq. 1).",
    ),
    cfg.IntOpt(
        "min_local_percent",
        default=10,
        min=1,
        max=100,
        help="Share in percent of its memory, and at least one slice, that an instance keeps from its host although "
        "it is predicted to be insensitive to latency: its CPUs need a NUMA node with memory. 100: none is treated so.",
    ),
    cfg.IntOpt(
        "proving_seconds",
        default=6 * 3600,
        min=300,
        max=28 * 86400,
        help="Seconds for which an instance must be observed, without a misprediction, before it counts as proven; "
        "until then the models' budget counts it as one that may fail.",
    ),
    cfg.IntOpt(
        "trial_instances",
        default=10,
        min=1,
        max=100000,
        help="Number of instances that models may mispredict before 100 minus target_percent of those that they "
        "decided is more; a new model begins with so many.",
    ),
    cfg.IntOpt(
        "refresh_seconds",
        default=300,
        min=1,
        max=86400,
        help="Seconds between two times that the leader computes the model's decisions for all projects and sizes. Few "
        "seconds are for a rack for trying out: each time reads four weeks of instances.",
    ),
    cfg.IntOpt(
        "window_seconds",
        default=60 * 86400,
        min=7 * 86400,
        max=366 * 86400,
        help="Seconds before now whose instances a model is trained and validated on.",
    ),
    cfg.IntOpt(
        "training_seconds",
        default=1800,
        min=10,
        max=86400,
        help="Seconds after which the process that trains is killed; nothing is promoted then.",
    ),
    cfg.IntOpt(
        "training_memory_mib",
        default=4096,
        min=1024,
        max=262144,
        help="Address space in MiB of the process that trains; one that needs more ends, and nothing is promoted.",
    ),
    cfg.IntOpt(
        "train_at_hour",
        default=3,
        min=-1,
        max=23,
        help="Hour of the day (UTC; no unit) from which on the leading controller trains a model once a day, "
        "if the extra ml is installed; -1: never.",
    ),
    cfg.IntOpt(
        "max_age_days",
        default=14,
        min=0,
        max=3650,
        help="Number of days after which the model that runs is told to be stale by pondstack-manage model list and "
        "pondstack-status upgrade check; 0: never.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [(GROUP, OPTIONS)]
