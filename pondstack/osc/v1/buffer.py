"""openstack memory buffer ..."""

import argparse
from collections.abc import Iterator
from itertools import islice
from typing import Any

from osc_lib import exceptions

from pondstack.osc.client import ApiError, Document
from pondstack.osc.v1 import base, runs
from pondstack.osc.v1.columns import Maybe, YesNo
from pondstack.osc.v1.slice import STATES

_SAME = ("lender", "incarnation", "kind", "state", "host", "consumer_uuid", "promised_to", "leaving", "reason", "cause")
_LIST: base.Fields = {
    "Lender": ("lender", None),
    "Kind": ("kind", None),
    "Buffers": ("buffers", None),
    "State": ("state", None),
    "Host": ("host", Maybe),
    "Consumer": ("consumer_uuid", Maybe),
    "Promised To": ("promised_to", Maybe),
    "Leaving": ("leaving", YesNo),
    "Reason": ("reason", Maybe),
    "Cause": ("cause", Maybe),
}
_SHOW: base.Fields = {
    "Lender": ("lender", None),
    "Incarnation": ("incarnation", None),
    "Index": ("index", None),
    "Offset MiB": ("offset_mib", None),
    "Size MiB": ("size_mib", None),
    "Kind": ("kind", None),
    "State": ("state", None),
    "Host": ("host", Maybe),
    "Consumer": ("consumer_uuid", Maybe),
    "Allocation": ("allocation_uuid", Maybe),
    "Guaranteed": ("guaranteed", YesNo),
    "Generation": ("generation", None),
    "Promised To": ("promised_to", Maybe),
    "Leaving": ("leaving", YesNo),
    "Epoch": ("epoch", None),
    "Reason": ("reason", Maybe),
    "Cause": ("cause", Maybe),
    "Changed At": ("changed_at", None),
}


class ListBuffer(base.ListCommand):
    """List the buffers that hosts lend, adjacent ones that are alike in one row"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the filters."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--lender", metavar="<host>", help="Only buffers of this lender (default: of all)")
        parser.add_argument("--state", metavar="<state>", choices=STATES, help=f"Only this state: {', '.join(STATES)}")
        parser.add_argument("--host", metavar="<host>", help="Only buffers that this host borrows")
        parser.add_argument("--each", action="store_true", help="One row per buffer")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        if parsed_args.marker and not parsed_args.lender:
            raise exceptions.CommandError("--marker goes with --lender only: each lender counts its buffers from 0")
        found = self._of(parsed_args.lender, parsed_args) if parsed_args.lender else self._of_all(parsed_args)
        rows = runs.each(found, "buffers") if parsed_args.each else runs.joined(found, _SAME, "buffers")
        return base.table(rows, _LIST)

    def _of(self, lender: str, parsed_args: argparse.Namespace) -> Iterator[Document]:
        return self.client.list(
            "lenders",
            lender,
            "buffers",
            state=parsed_args.state,
            host=parsed_args.host,
            limit=parsed_args.limit,
            marker=parsed_args.marker,
        )

    def _of_all(self, parsed_args: argparse.Namespace) -> Iterator[Document]:
        """Return the buffers of all lenders; one that has all back by now has none."""
        return islice(self._of_each(parsed_args), parsed_args.limit)

    def _of_each(self, parsed_args: argparse.Namespace) -> Iterator[Document]:
        for lender in self.client.list("lenders"):
            try:
                yield from self._of(lender["host"], parsed_args)
            except ApiError as error:
                if error.status != 404:
                    raise


class ShowBuffer(base.ShowCommand):
    """Show one buffer of a lender"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the lender and the index."""
        parser = super().get_parser(prog_name)
        parser.add_argument("lender", metavar="<lender>", help="Name of the host that lends it")
        parser.add_argument("index", metavar="<index>", type=int, help="Index of the buffer, from 0")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(self.client.get("lenders", parsed_args.lender, "buffers", str(parsed_args.index)), _SHOW)
