"""openstack memory split ..."""

import argparse
from typing import Any

from pondstack.osc.v1 import base, identity
from pondstack.osc.v1.columns import Column, Maybe


class Inputs(Column[dict[str, Any] | None]):
    """What a model decided from as `history 12, margin 0.1`; `-` for none."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return ", ".join(f"{name} {value}" for name, value in sorted((self._value or {}).items())) or "-"


_FIELDS: base.Fields = {
    "Consumer": ("consumer_uuid", None),
    "Local MiB": ("local_mib", None),
    "Pool MiB": ("pool_mib", None),
    "Source": ("source", None),
    "Confidence": ("confidence", Maybe),
    "Reason": ("reason", Maybe),
    "Created At": ("created_at", None),
    "Project": ("project_id", Maybe),
    "Model": ("model_version", Maybe),
}
_SHOW: base.Fields = {**_FIELDS, "Inputs": ("inputs", Inputs)}


class ListSplit(base.ListCommand):
    """List what instances were placed with, local and pool memory, and why"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the project."""
        parser = super().get_parser(prog_name)
        identity.add_project_filter(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        found = self.client.list(
            "splits",
            limit=parsed_args.limit,
            marker=parsed_args.marker,
            project_id=identity.filtered_id(self.manager, parsed_args),
        )
        return base.table(found, _FIELDS)


class ShowSplit(base.ShowCommand):
    """Show what an instance was placed with, local and pool memory, and why"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the instance."""
        parser = super().get_parser(prog_name)
        parser.add_argument("instance", metavar="<instance>", help="UUID of an instance")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(self.client.get("splits", parsed_args.instance), _SHOW)
