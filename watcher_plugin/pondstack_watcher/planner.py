"""Watcher's planner by weight, which knows our actions, too: as installed it fails for an action without a weight."""

from watcher.decision_engine.planner import weight

NAME = "pondstack"


class Planner(weight.WeightPlanner):
    """Sleepers are woken first; hosts are suspended after all were drained."""

    action_weights = {
        **weight.WeightPlanner.action_weights,
        "pondstack_wake_host": 69,
        "pondstack_restore_host": 68,
        "pondstack_apply_plan": 8,
        "pondstack_drain_host": 7,
        "pondstack_suspend_host": 6,
    }
    parallelization = {
        **weight.WeightPlanner.parallelization,
        "pondstack_wake_host": 2,
        "pondstack_restore_host": 1,
        "pondstack_apply_plan": 1,
        "pondstack_drain_host": 1,
        "pondstack_suspend_host": 2,
    }
