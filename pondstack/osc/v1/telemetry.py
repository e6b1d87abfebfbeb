"""openstack memory telemetry ..."""

import argparse
from typing import Any

from osc_lib.cli import parseractions
from osc_lib.command import command

from pondstack.osc.v1 import base
from pondstack.osc.v1.columns import Maybe, Rounded

_FIELDS: base.Fields = {
    "Metric": ("metric", None),
    "Node": ("node", Maybe),
    "Mean": ("mean", Rounded),
    "Minimum": ("minimum", Rounded),
    "Maximum": ("maximum", Rounded),
    "Readings": ("readings", None),
    "Taken At": ("taken_at", None),
    "Host": ("host", None),
    "Reason": ("reason", Maybe),
    "Source": ("source", Maybe),
}


class ShowTelemetry(base.WithClient, command.Lister):
    """Show what was measured of an instance from outside"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the instance and what of its telemetry."""
        parser = super().get_parser(prog_name)
        parser.add_argument("instance", metavar="<instance>", help="UUID of an instance")
        parser.add_argument("--metric", metavar="<metric>", help="Only this metric")
        parser.add_argument(
            "--history",
            choices=["samples", "periods"],
            help="All samples, or the sums of all periods, newest first (default: the newest sample of each metric)",
        )
        parser.add_argument(
            "--limit",
            metavar="<count>",
            type=int,
            action=parseractions.NonNegativeAction,
            help="Show at most this many rows (default: as many as the service gives at once)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        found = self.client.get(
            "telemetry",
            parsed_args.instance,
            metric=parsed_args.metric,
            history=parsed_args.history,
            limit=parsed_args.limit,
        )
        return base.table(found["samples"], _FIELDS)
