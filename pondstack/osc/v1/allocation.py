"""openstack memory allocation ..."""

import argparse
from typing import Any

from osc_lib import exceptions

from pondstack.osc.client import ApiError, Document, MemoryClient
from pondstack.osc.v1 import base, identity
from pondstack.osc.v1.columns import Extents, Maybe

_LIST: base.Fields = {
    "UUID": ("uuid", None),
    "Consumer": ("consumer_uuid", None),
    "State": ("state", None),
    "Local MiB": ("local_mib", None),
    "Pool MiB": ("pool_mib", None),
    "Host": ("host", Maybe),
    "Pool": ("pool_name", Maybe),
    "Slices": ("extents", Extents),
}
_SHOW: base.Fields = {
    **_LIST,
    "Guest MiB": ("guest_mib", None),
    "Slice MiB": ("slice_mib", Maybe),
    "Pool UUID": ("pool_uuid", Maybe),
    "Project": ("project_id", None),
    "User": ("user_id", None),
    "Generation": ("generation", None),
    "Created At": ("created_at", None),
}


def find(client: MemoryClient, uuid: str) -> Document:
    """Return the allocation with this UUID, or that of the instance with this UUID.

    An instance has two while it migrates: then the error names both.
    """
    of_instance = list(client.list("allocations", consumer_uuid=uuid))
    if len(of_instance) == 1:
        return of_instance[0]
    if of_instance:
        each = ", ".join(f"{item['uuid']} ({item['state']}, {item.get('host', 'host hidden')})" for item in of_instance)
        raise exceptions.CommandError(f"instance {uuid} has several allocations, it migrates; show one of: {each}")
    try:
        return client.get("allocations", uuid)
    except ApiError as error:
        if error.status != 404:
            raise
        raise exceptions.CommandError(
            f"no allocation and no instance with pool memory has the UUID {uuid}; "
            "`openstack memory allocation list` shows all that you may see, "
            "`openstack memory share show` the remote memory of one, too"
        ) from None


class ListAllocation(base.ListCommand):
    """List who holds pool memory"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the filters."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--consumer", metavar="<instance>", help="Only of this instance (UUID)")
        identity.add_project_filter(parser)
        parser.add_argument("--host", metavar="<host>", help="Only on this host (operator)")
        parser.add_argument("--pool", metavar="<pool>", help="Only from this pool, name or UUID (operator)")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        pool = self.client.get("pools", parsed_args.pool)["uuid"] if parsed_args.pool else None
        found = self.client.list(
            "allocations",
            consumer_uuid=parsed_args.consumer,
            project_id=identity.filtered_id(self.manager, parsed_args),
            host=parsed_args.host,
            pool_uuid=pool,
            limit=parsed_args.limit,
            marker=parsed_args.marker,
        )
        return base.table(found, _LIST)


class ShowAllocation(base.ShowCommand):
    """Show the pool memory of an instance"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the instance or allocation."""
        parser = super().get_parser(prog_name)
        parser.add_argument("allocation", metavar="<instance|allocation>", help="UUID of an instance or an allocation")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(find(self.client, parsed_args.allocation), _SHOW)
