"""openstack memory mitigation list; openstack memory allocation mitigate and abort."""

import argparse
from typing import Any
from uuid import uuid4

from pondstack.osc.client import Document
from pondstack.osc.v1 import base, identity
from pondstack.osc.v1.columns import Maybe
from pondstack.osc.v1.progress import Progress

WAIT_SECONDS = 900
"""How long --wait follows a mitigation, unless --timeout says otherwise: it may be a live migration."""
_LIST: base.Fields = {
    "UUID": ("uuid", None),
    "Consumer": ("consumer_uuid", None),
    "State": ("state", None),
    "Pool MiB": ("pool_mib", None),
    "Left MiB": ("left_mib", None),
    "Method": ("method", Maybe),
    "Trigger": ("trigger", Maybe),
    "Host": ("host", Maybe),
    "Reason": ("reason", Maybe),
    "Created At": ("created_at", None),
    "Ended At": ("ended_at", Maybe),
}


class ListMitigation(base.ListCommand):
    """List servers whose pool memory was, or is being, taken away for good; the newest first"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the filters."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--consumer", metavar="<instance>", help="Only of this instance (UUID)")
        identity.add_project_filter(parser)
        parser.add_argument("--host", metavar="<host>", help="Only from this host (operator)")
        parser.add_argument("--open", action="store_true", help="Only those that go on")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        found = self.client.list(
            "mitigations",
            consumer_uuid=parsed_args.consumer,
            project_id=identity.filtered_id(self.manager, parsed_args),
            host=parsed_args.host,
            open="true" if parsed_args.open else None,
            limit=parsed_args.limit,
            marker=parsed_args.marker,
        )
        return base.table(found, _LIST)


class _OneMitigation(base.ShowCommand):
    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the instance and --wait."""
        parser = super().get_parser(prog_name)
        parser.add_argument("instance", metavar="<instance>", help="UUID of the instance")
        parser.add_argument("--wait", action="store_true", help="Follow until it has ended")
        parser.add_argument(
            "--timeout",
            metavar="<seconds>",
            type=float,
            default=WAIT_SECONDS,
            help=f"Seconds after which --wait gives up; the mitigation goes on (default {WAIT_SECONDS})",
        )
        return parser

    def _ended(self, told: Document, parsed_args: argparse.Namespace, wanted: str) -> Any:
        if parsed_args.wait:
            told = MitigationProgress(self.client, told).follow(parsed_args.timeout, wanted)
        return base.record(told, _LIST)


class MitigateAllocation(_OneMitigation):
    """Take a server's pool memory away for good: it gets local memory in its place"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add how."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--force", action="store_true", help="Although it was done before")
        parser.add_argument(
            "--method",
            metavar="copy|migrate",
            choices=["copy", "migrate"],
            help="copy: on its host; migrate: move it to a host that has local memory (default: copy where it fits)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the mitigation: as it began, or with --wait as it ended."""
        body: Document = {"forced": parsed_args.force, "operation_id": str(uuid4())}
        if parsed_args.method:
            body["method"] = parsed_args.method
        told = self.client.post("allocations", parsed_args.instance, "mitigate", body=body)
        return self._ended(told, parsed_args, "done")


class AbortAllocation(_OneMitigation):
    """Put an end to what takes a server's pool memory away; the server keeps it"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the mitigation: as it is, or with --wait as it ended."""
        body = {"operation_id": str(uuid4())}
        told = self.client.post("allocations", parsed_args.instance, "abort", body=body)
        return self._ended(told, parsed_args, "aborted")


class MitigationProgress(Progress):
    """A mitigation that goes on."""

    @property
    def name(self) -> str:
        """The instance's UUID."""
        return str(self.told["consumer_uuid"])

    @property
    def command(self) -> str:
        """That shows it."""
        return f"mitigation list --consumer {self.told['consumer_uuid']}"

    def ask(self) -> Document:
        """Ask for the instance's mitigations."""
        found = self.client.list("mitigations", consumer_uuid=self.told["consumer_uuid"])
        return next((item for item in found if item["uuid"] == self.told["uuid"]), self.told)

    def text(self) -> str:
        """Return its state, and how much has moved."""
        told = self.told
        reason = f": {told['reason']}" if told.get("reason") else ""
        moved = told["pool_mib"] - told["left_mib"]
        return f"{told['state']}, {moved} of {told['pool_mib']} MiB moved{reason}"

    def follow(self, timeout_seconds: float, wanted: str) -> Document:
        """Return it when it has ended; raises CommandError where it ended otherwise than wanted, or not in time."""
        told = self.until(lambda told: told["ended_at"] is not None, timeout_seconds)
        return self.check(told["state"] == wanted)
