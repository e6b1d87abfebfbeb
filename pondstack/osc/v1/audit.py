"""openstack memory audit"""

import argparse
import sys
from typing import Any

from osc_lib.command import command

from pondstack.osc.v1 import base

_FIELDS: base.Fields = {
    "Severity": ("severity", None),
    "Code": ("code", None),
    "Subject": ("subject", None),
    "Detail": ("detail", None),
    "Action": ("action", None),
}


class Audit(base.WithClient, command.Lister):
    """Compare ledger, Placement, agents and devices now; exits 1 when they do not agree"""

    clean = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add --repair."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--repair", action="store_true", help="Mend what can be explained")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the findings; the verdict goes to stderr, so that -f json stays JSON."""
        answer = self.client.post("audits", body={"repair": parsed_args.repair})
        self.clean = answer["clean"]
        verdict = "clean" if self.clean else f"{len(answer['findings'])} finding(s)"
        totals = ", ".join(f"{name} {value}" for name, value in answer["totals"].items())
        print(f"Audit: {verdict} ({totals})", file=sys.stderr)
        return base.table(answer["findings"], _FIELDS)

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Return the exit status."""
        failed = super().run(parsed_args)
        return failed or (0 if self.clean else 1)
