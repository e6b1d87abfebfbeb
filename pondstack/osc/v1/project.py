"""openstack memory project ..."""

import argparse
from typing import Any

from osc_lib import exceptions

from pondstack.osc.v1 import base, identity
from pondstack.osc.v1.columns import Maybe

_FIELDS: base.Fields = {
    "Project": ("project_id", None),
    "Default Policy": ("default_policy", Maybe),
    "Max Pool Percent": ("max_pool_percent", Maybe),
    "Updated At": ("updated_at", Maybe),
}


class ListProject(base.ListCommand):
    """List the projects for which something is set, and what"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        return base.table(self.client.list("projects", limit=parsed_args.limit, marker=parsed_args.marker), _FIELDS)


class _OneProject(base.ShowCommand):
    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the project."""
        parser = super().get_parser(prog_name)
        identity.add_project(parser)
        return parser

    def _change(self, project_id: str, changes: dict[str, Any]) -> Any:
        return base.record(self.client.put("projects", project_id, body=changes), _FIELDS)


def _checked(changes: dict[str, Any]) -> dict[str, Any]:
    if not changes:
        raise exceptions.CommandError("say what to change: --default-policy or --max-pool-percent")
    return changes


class ShowProject(_OneProject):
    """Show what is set for a project"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(identity.known_project(self.manager, self.client, parsed_args), _FIELDS)


class SetProject(_OneProject):
    """Set what a project's servers of plain flavors are treated as, and how much pool memory its servers may have"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the settings."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--default-policy",
            metavar="none|auto",
            choices=["none", "auto"],
            help="Servers of flavors without pond: specs are all local, or treated as with pond:policy=auto",
        )
        parser.add_argument(
            "--max-pool-percent",
            metavar="<percent>",
            type=int,
            help="The largest share of a server's memory that is decided to be pool memory, 0 to 100; 0: none",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return what is set then."""
        given = {"default_policy": parsed_args.default_policy, "max_pool_percent": parsed_args.max_pool_percent}
        changes = _checked({name: value for name, value in given.items() if value is not None})
        return self._change(identity.project_id(self.manager, parsed_args), changes)


class UnsetProject(_OneProject):
    """Unset what was set for a project"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add what to unset."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--default-policy", action="store_true", help="Aggregates and nova.conf decide again")
        parser.add_argument("--max-pool-percent", action="store_true", help="Nothing but the flavor caps the share")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return what is set then."""
        named = {"default_policy": parsed_args.default_policy, "max_pool_percent": parsed_args.max_pool_percent}
        changes = _checked({name: None for name, unset in named.items() if unset})
        known = identity.known_project(self.manager, self.client, parsed_args)
        return self._change(known["project_id"], changes)
