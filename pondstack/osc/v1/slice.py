"""openstack memory slice ..."""

import argparse
from typing import Any

from pondstack.osc.v1 import base, runs
from pondstack.osc.v1.columns import Maybe

STATES = ("free", "assigning", "online", "releasing", "sanitizing", "quarantined")

_SAME = ("pool_name", "state", "host", "consumer_uuid", "allocation_uuid", "reason", "cause")
_LIST: base.Fields = {
    "Pool": ("pool_name", None),
    "Slices": ("slices", None),
    "State": ("state", None),
    "Host": ("host", Maybe),
    "Consumer": ("consumer_uuid", Maybe),
    "Allocation": ("allocation_uuid", Maybe),
    "Reason": ("reason", Maybe),
    "Cause": ("cause", Maybe),
}
_SHOW: base.Fields = {
    "Pool": ("pool_name", None),
    "Pool UUID": ("pool_uuid", None),
    "Index": ("index", None),
    "State": ("state", None),
    "Host": ("host", Maybe),
    "Consumer": ("consumer_uuid", Maybe),
    "Allocation": ("allocation_uuid", Maybe),
    "Epoch": ("epoch", None),
    "Reason": ("reason", Maybe),
    "Cause": ("cause", Maybe),
    "Changed At": ("changed_at", None),
}


class ListSlice(base.ListCommand):
    """List the slices of a pool, adjacent ones that are alike in one row"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the pool and the filters."""
        parser = super().get_parser(prog_name)
        parser.add_argument("pool", metavar="<pool>", help="Name or UUID of the pool")
        parser.add_argument("--state", metavar="<state>", choices=STATES, help=f"Only this state: {', '.join(STATES)}")
        parser.add_argument("--host", metavar="<host>", help="Only slices of this host")
        parser.add_argument("--each", action="store_true", help="One row per slice")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        found = self.client.list(
            "pools",
            parsed_args.pool,
            "slices",
            state=parsed_args.state,
            host=parsed_args.host,
            limit=parsed_args.limit,
            marker=parsed_args.marker,
        )
        rows = runs.each(found, "slices") if parsed_args.each else runs.joined(found, _SAME, "slices")
        return base.table(rows, _LIST)


class ShowSlice(base.ShowCommand):
    """Show one slice of a pool"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the pool and the index."""
        parser = super().get_parser(prog_name)
        parser.add_argument("pool", metavar="<pool>", help="Name or UUID of the pool")
        parser.add_argument("index", metavar="<index>", type=int, help="Index of the slice, from 0")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(self.client.get("pools", parsed_args.pool, "slices", str(parsed_args.index)), _SHOW)
