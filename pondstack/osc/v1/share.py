"""openstack memory share ..."""

import argparse
from typing import Any

from pondstack.osc.v1 import base, identity
from pondstack.osc.v1.columns import Maybe, MaybeNames

_LIST: base.Fields = {
    "Consumer": ("consumer_uuid", None),
    "Pool MiB": ("pool_mib", None),
    "Remote MiB": ("remote_mib", Maybe),
    "Remote Lent MiB": ("remote_lent_mib", None),
    "Disk MiB": ("disk_mib", Maybe),
    "Swap MiB": ("swap_mib", Maybe),
    "Swap Lent MiB": ("swap_lent_mib", None),
    "Hosts": ("hosts", MaybeNames),
}
_SHOW: base.Fields = {**_LIST, "Project": ("project_id", None)}


class ListShare(base.ListCommand):
    """List what servers have beside local memory: pool, remote and disk shares, swap disks"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the filters."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--consumer", metavar="<instance>", help="Only of this instance (UUID)")
        identity.add_project_filter(parser)
        parser.add_argument("--host", metavar="<host>", help="Only on this host (operator)")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        found = self.client.list(
            "shares",
            consumer_uuid=parsed_args.consumer,
            project_id=identity.filtered_id(self.manager, parsed_args),
            host=parsed_args.host,
            limit=parsed_args.limit,
            marker=parsed_args.marker,
        )
        return base.table(found, _LIST)


class ShowShare(base.ShowCommand):
    """Show what a server has beside local memory: by its flavor, and lent to it now"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the instance."""
        parser = super().get_parser(prog_name)
        parser.add_argument("instance", metavar="<instance>", help="UUID of the instance")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(self.client.get("shares", parsed_args.instance), _SHOW)
