"""openstack memory history ..."""

import argparse
from typing import Any

from pondstack.osc.v1 import base
from pondstack.osc.v1.columns import Column, Maybe, Span, YesNo


class Labels(Column[list[dict[str, Any]]]):
    """What was seen of a guest, a line each: `all: 2560 MiB, synthetic`."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        lines = (
            f"{'all' if item['node'] is None else 'node ' + str(item['node'])}: {item['untouched_mib']} MiB"
            + ("" if item["source"] == "measured" else f", {item['source']}")
            for item in self._value
        )
        return "\n".join(lines) or "-"


_FIELDS: base.Fields = {
    "Consumer": ("consumer_uuid", None),
    "Project": ("project_id", None),
    "Flavor": ("flavor_name", None),
    "Memory MiB": ("memory_mib", None),
    "VCPUs": ("vcpus", None),
    "Image OS": ("image_os", Maybe),
    "Zone": ("zone", Maybe),
    "Created At": ("created_at", None),
    "Sized At": ("sized_at", None),
    "Deleted At": ("deleted_at", Maybe),
    "Age": ("age_seconds", Span),
    "Untouched MiB": ("untouched_mib", Maybe),
    "Coverage": ("coverage", None),
    "Trains": ("trains", YesNo),
    "Labels": ("labels", Labels),
    "Remaining Median": ("remaining_median_seconds", Span),
    "Remaining P90": ("remaining_p90_seconds", Span),
    "Remaining Group": ("remaining_group", Maybe),
    "Remaining At Risk": ("remaining_at_risk", None),
    "Remaining Reason": ("remaining_reason", Maybe),
    "Recent Instances": ("recent_instances", None),
    "Recent Untouched P5": ("recent_untouched_p5", Maybe),
    "Recent Untouched P25": ("recent_untouched_p25", Maybe),
    "Recent Untouched P50": ("recent_untouched_p50", Maybe),
    "Recent Source": ("recent_source", Maybe),
}


class ShowHistory(base.ShowCommand):
    """Show what is known of an instance: its memory that stays untouched, and how long it will still live"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the instance."""
        parser = super().get_parser(prog_name)
        parser.add_argument("instance", metavar="<instance>", help="UUID of an instance, also of a deleted one")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(self.client.get("history", parsed_args.instance), _FIELDS)
