"""openstack memory agent ..."""

import argparse
from typing import Any

from pondstack.osc.v1 import base

_FIELDS: base.Fields = {
    "Host": ("host", None),
    "Up": ("up", None),
    "Version": ("version", None),
    "Epoch": ("epoch", None),
    "Last Heartbeat": ("last_heartbeat", None),
    "Heartbeat Age Seconds": ("heartbeat_age_seconds", None),
}


class ListAgent(base.ListCommand):
    """List the agents of the hosts, alive or not"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        return base.table(self.client.list("agents", limit=parsed_args.limit, marker=parsed_args.marker), _FIELDS)


class ShowAgent(base.ShowCommand):
    """Show the agent of a host"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the host."""
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="<host>", help="Name of the agent's host")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(self.client.get("agents", parsed_args.host), _FIELDS)
