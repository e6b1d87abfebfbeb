"""openstack memory leader ..."""

import argparse
from typing import Any

from pondstack.osc.v1 import base
from pondstack.osc.v1.columns import Maybe

_FIELDS: base.Fields = {
    "Holder": ("holder", Maybe),
    "Epoch": ("epoch", None),
    "Age Seconds": ("age_seconds", None),
    "Fresh": ("fresh", None),
}


class ShowLeader(base.ShowCommand):
    """Show which controller writes the ledger, and since which epoch"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        del parsed_args
        return base.record(self.client.get("leader"), _FIELDS)
