"""The goal: memory of idle hosts becomes memory of others. Zombieland, EuroSys'18, section 3."""

from typing import Any

from watcher.decision_engine.goal import base
from watcher.decision_engine.goal.efficacy import base as efficacy_base
from watcher.decision_engine.goal.efficacy import indicators
from watcher.decision_engine.solution import efficacy

NAME = "pondstack_idle_memory"


class _Count(indicators.IndicatorSpecification):
    @property
    def schema(self) -> dict[str, Any]:
        """Return that of an integer; it may be below 0, where more is taken back than is gained."""
        return {"type": "integer"}


class IdleMemoryEfficacy(efficacy_base.EfficacySpecification):
    """What a solution is expected to bring."""

    def get_indicators_specifications(self) -> list[indicators.IndicatorSpecification]:
        """Return counts of hosts and migrations, and MiB."""
        return [
            indicators.ComputeNodesCount(),
            indicators.ReleasedComputeNodesCount(),
            indicators.InstanceMigrationsCount(),
            _Count("woken_compute_nodes_count", "The number of compute nodes to be woken."),
            _Count("gained_mib", "Memory that compute nodes could lend more.", "MiB"),
            _Count("left_out_count", "Compute nodes and servers that take no part, by the log of the decision engine."),
        ]

    def get_global_efficacy_indicator(self, indicators_map: Any = None) -> list[efficacy.Indicator]:
        """Return the share of compute nodes that are emptied."""
        nodes = indicators_map.compute_nodes_count if indicators_map else 0
        value = 100.0 * indicators_map.released_compute_nodes_count / nodes if nodes else 0.0
        text = "Ratio of compute nodes that are emptied to all that are enabled."
        return [efficacy.Indicator("released_nodes_ratio", text, "%", value)]


class IdleMemory(base.Goal):
    """Hosts with little to do are emptied, lend their memory and sleep."""

    @classmethod
    def get_name(cls) -> str:
        """Return the name of the entry point."""
        return NAME

    @classmethod
    def get_display_name(cls) -> str:
        """Return what people read."""
        return cls.get_translatable_display_name()

    @classmethod
    def get_translatable_display_name(cls) -> str:
        """Return the same, for Watcher to translate."""
        return "Memory of idle hosts"

    @classmethod
    def get_efficacy_specification(cls) -> IdleMemoryEfficacy:
        """Return what solutions are judged by."""
        return IdleMemoryEfficacy()
