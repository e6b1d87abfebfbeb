"""openstack memory loan ..."""

import argparse
from typing import Any

from pondstack.osc.v1 import base, identity
from pondstack.osc.v1.columns import LentRuns, Maybe

_LIST: base.Fields = {
    "UUID": ("uuid", None),
    "Consumer": ("consumer_uuid", None),
    "Guaranteed": ("guaranteed", None),
    "State": ("state", None),
    "Lent MiB": ("lent_mib", None),
    "Host": ("host", Maybe),
    "Buffers": ("buffers", LentRuns),
}
_SHOW: base.Fields = {
    **_LIST,
    "Project": ("project_id", None),
    "User": ("user_id", None),
    "Created At": ("created_at", None),
}


class ListLoan(base.ListCommand):
    """List who borrows which buffers of whom"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the filters."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--consumer", metavar="<instance>", help="Only of this instance (UUID)")
        identity.add_project_filter(parser)
        kind = parser.add_mutually_exclusive_group()
        kind.add_argument("--guaranteed", action="store_true", help="Only parts of instances' memory")
        kind.add_argument("--best-effort", action="store_true", help="Only what is for swap disks")
        parser.add_argument("--host", metavar="<host>", help="Only what this host borrows (operator)")
        parser.add_argument("--lender", metavar="<host>", help="Only loans with buffers of this lender (operator)")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        kinds = {"true": parsed_args.guaranteed, "false": parsed_args.best_effort}
        found = self.client.list(
            "loans",
            consumer_uuid=parsed_args.consumer,
            project_id=identity.filtered_id(self.manager, parsed_args),
            guaranteed=next((text for text, wanted in kinds.items() if wanted), None),
            host=parsed_args.host,
            lender=parsed_args.lender,
            limit=parsed_args.limit,
            marker=parsed_args.marker,
        )
        return base.table(found, _LIST)


class ShowLoan(base.ShowCommand):
    """Show a loan: what an instance has borrowed at once, and of whom"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the loan."""
        parser = super().get_parser(prog_name)
        parser.add_argument("loan", metavar="<loan>", help="UUID of the loan")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(self.client.get("loans", parsed_args.loan), _SHOW)
