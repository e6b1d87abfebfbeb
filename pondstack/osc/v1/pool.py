"""openstack memory pool ..."""

import argparse
from typing import Any

from pondstack.osc.v1 import base, removal
from pondstack.osc.v1.columns import Counts, FreeBuffer, Names

_LIST: base.Fields = {
    "UUID": ("uuid", None),
    "Name": ("name", None),
    "State": ("state", None),
    "Slice MiB": ("slice_mib", None),
    "Total": ("slices_total", None),
    "Slices": ("slices", Counts),
    "Hosts": ("hosts", Names),
}
_SHOW: base.Fields = {
    **_LIST,
    "Free Buffer": ("free_buffer", FreeBuffer),
    "Serial": ("serial", None),
    "Driver": ("driver", None),
    "Generation": ("generation", None),
    "Created At": ("created_at", None),
}


class ListPool(base.ListCommand):
    """List the pool devices and how many of their slices are in which state"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        return base.table(self.client.list("pools", limit=parsed_args.limit, marker=parsed_args.marker), _LIST)


class ShowPool(base.ShowCommand):
    """Show a pool device"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the pool."""
        parser = super().get_parser(prog_name)
        parser.add_argument("pool", metavar="<pool>", help="Name or UUID of the pool")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(self.client.get("pools", parsed_args.pool), _SHOW)


class DeletePool(base.Command):
    """Remove a pool whose device is gone for good; refused with the list of what is left while guests have any of it"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the pool and --wait."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("pool", metavar="<pool>", help="Name or UUID of the pool")
        removal.add_options(parser, "Wait until its slices have come back")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Remove it, at once or as soon as it is empty."""
        removal.remove(self.client, "pools", parsed_args.pool, timeout_seconds=removal.patience(parsed_args))
