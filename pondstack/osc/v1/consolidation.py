"""openstack memory consolidation freeze, thaw, set, unset and show."""

import argparse
from typing import Any
from uuid import uuid4

from osc_lib import exceptions

from pondstack.osc.client import Document
from pondstack.osc.v1 import base
from pondstack.osc.v1.columns import Maybe

_FIELDS: base.Fields = {
    "Frozen": ("frozen", None),
    "Reason": ("reason", Maybe),
    "Since": ("since", Maybe),
    "Reserve Percent": ("reserve_percent", Maybe),
    "Least Awake": ("least_awake", Maybe),
}


class ShowConsolidation(base.ShowCommand):
    """Show whether consolidation is frozen, and what is set in place of options; -: as [consolidation] says"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        del parsed_args
        return _record(self.client.get("consolidation"))


class FreezeConsolidation(base.ShowCommand):
    """Have no plan of consolidation begin or go on, at once; drains go on"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the reason."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--reason", metavar="<text>", help="Why, for others to read")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return whether it is frozen."""
        body: Document = {"frozen": True, "operation_id": str(uuid4())}
        if parsed_args.reason:
            body["reason"] = parsed_args.reason
        return _record(self.client.put("consolidation", body=body))


class ThawConsolidation(base.ShowCommand):
    """Let plans of consolidation begin and go on again"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return whether it is frozen."""
        del parsed_args
        body: Document = {"frozen": False, "operation_id": str(uuid4())}
        return _record(self.client.put("consolidation", body=body))


class _Limits(base.ShowCommand):
    def _change(self, changes: Document) -> Any:
        if not changes:
            raise exceptions.CommandError("say what to change: --reserve-percent or --least-awake")
        body = changes | {"operation_id": str(uuid4())}
        return _record(self.client.put("consolidation", "limits", body=body))


class SetConsolidation(_Limits):
    """Set how much of the cloud consolidation leaves awake and free, in place of options of [consolidation]"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the limits."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--reserve-percent",
            metavar="<percent>",
            type=float,
            help="So much of the VCPUs and of the memory of awake hosts plans keep free to be claimed, 0 to 100",
        )
        parser.add_argument("--least-awake", metavar="<hosts>", type=int, help="So many hosts stay awake at least")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return what is set then."""
        given = {"reserve_percent": parsed_args.reserve_percent, "least_awake": parsed_args.least_awake}
        return self._change({name: value for name, value in given.items() if value is not None})


class UnsetConsolidation(_Limits):
    """Let options of [consolidation] hold again"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add what to unset."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--reserve-percent", action="store_true", help="The option reserve_percent holds again")
        parser.add_argument("--least-awake", action="store_true", help="The option least_awake holds again")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return what is set then."""
        named = {"reserve_percent": parsed_args.reserve_percent, "least_awake": parsed_args.least_awake}
        return self._change({name: None for name, unset in named.items() if unset})


def _record(told: Document) -> Any:
    nothing = {"reserve_percent": None, "least_awake": None}  # of an API before 1.23
    return base.record(nothing | told | told.get("limits", {}), _FIELDS)
