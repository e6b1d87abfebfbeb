"""openstack memory qos ... and openstack memory performance set"""

import argparse
from typing import Any

from osc_lib.command import command

from pondstack.osc.v1 import base
from pondstack.osc.v1.columns import Column, Maybe, Rounded

ACTIONS = ("leave", "would_mitigate", "mitigate", "wait", "once", "refused")


class Interval(Column[list[float | None]]):
    """Two bounds in percent as `-1.20 to 3.40`; `-` for none."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        low, high = self._value
        return "-" if low is None or high is None else f"{low:.2f} to {high:.2f}"


class Facts(Column[dict[str, Any] | None]):
    """An object as `name value, name value`; `-` for none."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return ", ".join(f"{name} {value}" for name, value in (self._value or {}).items()) or "-"


class Several(Column[list[dict[str, Any]] | None]):
    """Objects, one in each line."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        lines = [", ".join(f"{name} {value}" for name, value in item.items()) for item in self._value or []]
        return "\n".join(lines) or "-"


class Told(Column[list[dict[str, Any]] | None]):
    """Decisions, one in each line: when, what, and why."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        lines = [f"{item['decided_at']} {item['action']}: {item['reason']}" for item in self._value or []]
        return "\n".join(lines) or "-"


_LIST: base.Fields = {
    "ID": ("id", None),
    "Consumer": ("consumer_uuid", None),
    "Host": ("host", None),
    "Verdict": ("verdict", None),
    "Action": ("action", None),
    "Mode": ("mode", None),
    "Slowdown %": ("expected_percent", Rounded),
    "Decided At": ("decided_at", None),
    "Reason": ("reason", None),
}
_SHOW: base.Fields = {
    "Consumer": ("consumer_uuid", None),
    "Project": ("project_id", Maybe),
    "Corrected": ("corrected", None),
    "Corrected At": ("corrected_at", Maybe),
    "Split Source": ("split_source", Maybe),
    "Reprediction": ("reprediction", Facts),
    "Performance": ("performance", Several),
    "Decisions": ("decisions", Told),
}
_REPORT: base.Fields = {
    "Metric": ("metric", None),
    "Better": ("better", None),
    "Control": ("control_instances", None),
    "Predicted": ("predicted_instances", None),
    "Control Mean": ("control_mean", Rounded),
    "Predicted Mean": ("predicted_mean", Rounded),
    "Difference %": ("difference_percent", Rounded),
    "Interval %": ("interval_percent", Interval),
}
_PERFORMANCE: base.Fields = {
    "Metric": ("metric", None),
    "Higher Is Better": ("higher_is_better", None),
    "Readings": ("readings", None),
    "Mean": ("mean", None),
    "Newest": ("newest", None),
    "Updated At": ("updated_at", None),
}


class ListQos(base.ListCommand):
    """List what the QoS monitor decided about servers that use more pool memory than predicted, the newest first"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the filters."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--consumer", metavar="<instance>", help="Only about this instance (UUID)")
        parser.add_argument("--action", metavar="<action>", choices=ACTIONS, help=f"Only these: {', '.join(ACTIONS)}")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        found = self.client.list(
            "qos",
            collection="decisions",
            consumer_uuid=parsed_args.consumer,
            action=parsed_args.action,
            limit=parsed_args.limit,
            marker=parsed_args.marker,
        )
        return base.table(found, _LIST)


class ShowQos(base.ShowCommand):
    """Show whether a server was corrected, and to the operator why and what could be pooled of it"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the instance."""
        parser = super().get_parser(prog_name)
        parser.add_argument("instance", metavar="<instance>", help="UUID of an instance")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(self.client.get("qos", parsed_args.instance), _SHOW)


class ReportQos(base.WithClient, command.Lister):
    """Compare servers of the control group with the others by what their projects tell of their performance"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows; what could be pooled besides goes to standard error."""
        del parsed_args
        found = self.client.get("qos", "report")
        told = f"{found['repredicted_instances']} long-lived instances were predicted again, {found['reclaimable_mib']}"
        self.app.stderr.write(f"{told} MiB of them could come from a pool at their next move\n")
        return base.table([_compared(item) for item in found["comparisons"]], _REPORT)


def _compared(item: dict[str, Any]) -> dict[str, Any]:
    better = "higher" if item["higher_is_better"] else "lower"
    return {**item, "better": better, "interval_percent": [item["low_percent"], item["high_percent"]]}


class SetPerformance(base.ShowCommand):
    """Tell how well a server of one's project does, so that the operator sees what pool memory costs"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the figure."""
        parser = super().get_parser(prog_name)
        parser.add_argument("instance", metavar="<instance>", help="UUID of an instance")
        parser.add_argument("--metric", metavar="<metric>", required=True, help="Name with its unit, as p99_ms")
        parser.add_argument("--value", metavar="<value>", type=float, required=True, help="The figure")
        better = parser.add_mutually_exclusive_group(required=True)
        better.add_argument("--higher-is-better", action="store_true", help="As of requests per second")
        better.add_argument("--lower-is-better", action="store_true", help="As of a latency")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return what is kept of the metric."""
        body = {
            "metric": parsed_args.metric,
            "value": parsed_args.value,
            "higher_is_better": parsed_args.higher_is_better,
        }
        return base.record(self.client.put("performance", parsed_args.instance, body=body), _PERFORMANCE)
