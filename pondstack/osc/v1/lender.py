"""openstack memory lender ..."""

import argparse
from typing import Any

from pondstack.osc.v1 import base
from pondstack.osc.v1.columns import Counts, Maybe, Operations

_LIST: base.Fields = {
    "Host": ("host", None),
    "Kind": ("kind", None),
    "Lent MiB": ("lent_mib", None),
    "Lendable MiB": ("lendable_mib", Maybe),
    "Buffer MiB": ("buffer_mib", None),
    "Buffers": ("buffers", Counts),
    "Borrowed MiB": ("borrowed_mib", Maybe),
}
_SHOW: base.Fields = {
    **_LIST,
    "Operations": ("operations", Operations),
    "Incarnation": ("incarnation", Maybe),
    "Created At": ("created_at", None),
}


class ListLender(base.ListCommand):
    """List the hosts that lend memory: as what, how much, and how much more they could"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        return base.table(self.client.list("lenders", limit=parsed_args.limit, marker=parsed_args.marker), _LIST)


class ShowLender(base.ShowCommand):
    """Show a host that lends memory, and how far it is with what it was asked for"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the host."""
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="<host>", help="Name of the host")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(self.client.get("lenders", parsed_args.host), _SHOW)
