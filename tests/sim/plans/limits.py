"""[sleep] and [consolidation] of a history, in virtual seconds: the defaults made short, in the same proportions."""

from random import Random
from types import SimpleNamespace

from pondstack.conf import consolidation as consolidation_conf

from ..plan import History


def sleep() -> SimpleNamespace:
    """Return [sleep]."""
    return SimpleNamespace(
        interval_seconds=0.5,
        driver="frozen",
        lend_seconds=12.0,
        suspend_seconds=6.0,
        confirm_seconds=4.0,
        wake_seconds=8.0,
        retry_seconds=1.0,
        call_seconds=0.6,
        stuck_seconds=60.0,
        # No device of a history has RDMA.
        doorbell_hosts=0,
        deeper_driver="",
        deeper_seconds=30.0,
    )


def consolidation(history: History) -> SimpleNamespace:
    """Return [consolidation]; some of it is drawn."""
    rng = Random(f"consolidation {history.seed}")
    defaults = {item.dest: item.default for item in consolidation_conf.OPTIONS}
    return SimpleNamespace(
        **defaults
        | {
            "interval_seconds": 0.5,
            "metric_seconds": 10.0,
            "plan_seconds": 15.0,
            "idle_seconds": 8.0,
            "unplaced_seconds": 2.0,
            "least_awake": rng.choice((1, 1, 2)),
            "migrations_per_hour": rng.choice((2, 4, 60)),
            "migrations_at_a_time": rng.choice((1, 2)),
            "auto": rng.random() < 0.3,
            "auto_seconds": rng.choice((4.0, 8.0)),
            "underload_percent": 90.0,
            "overload_percent": 95.0,
        }
    )
