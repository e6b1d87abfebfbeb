"""openstack memory host ..."""

import argparse
from typing import Any
from uuid import uuid4

from osc_lib import exceptions

from pondstack.osc.v1 import base, host_slices, operation, removal
from pondstack.osc.v1.columns import (
    Borrowing,
    HostSlices,
    Lending,
    Maybe,
    Names,
    Power,
    Sleep,
    SleepWord,
    Tiering,
    YesNo,
)

_LIST: base.Fields = {
    "Name": ("name", None),
    "Enabled": ("enabled", None),
    "Up": ("up", None),
    "Pool MiB": ("pool_mib", None),
    "Pools": ("pools", Names),
    "Disabled Reason": ("disabled_reason", Maybe),
    "Sleep": ("sleep", SleepWord),
}
_SHOW: base.Fields = {
    **_LIST,
    "Fenced": ("fenced", None),
    "Fenced Reason": ("fenced_reason", Maybe),
    "Provider": ("provider_uuid", Maybe),
    "Generation": ("generation", None),
    "Created At": ("created_at", None),
    "Tiering": ("tiering", Tiering),
    "Lending": ("lending", Lending),
    "Borrowing": ("borrowing", Borrowing),
    "Sleep": ("sleep", Sleep),
    "Power": ("power", Power),
    "Host Slices": ("host_slices", HostSlices),
    "Tiering On": ("tiering_on", YesNo),
}


class ListHost(base.ListCommand):
    """List the hosts, the pool memory that they hold and whether they get more"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        return base.table(self.client.list("hosts", limit=parsed_args.limit, marker=parsed_args.marker), _LIST)


class _OneHost(base.ShowCommand):
    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the host."""
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="<host>", help="Name of the host (Nova's hypervisor hostname)")
        return parser


class ShowHost(_OneHost):
    """Show a host"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(self.client.get("hosts", parsed_args.host), _SHOW)


class SetHost(_OneHost):
    """Enable or disable a host for new pool memory, or have it hold slices for itself; what it holds stays with it"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the change."""
        parser = super().get_parser(prog_name)
        change = parser.add_mutually_exclusive_group()
        change.add_argument("--enable", action="store_true", help="Let the host have new pool memory")
        change.add_argument("--disable", action="store_true", help="Give the host no new pool memory")
        parser.add_argument("--reason", metavar="<text>", help="Why the host is disabled")
        host_slices.add_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Change the host as it was just read: another change in between is a conflict, and nothing is lost."""
        if parsed_args.reason and not parsed_args.disable:
            raise exceptions.CommandError("--reason goes with --disable only")
        switches = parsed_args.enable or parsed_args.disable
        changes = host_slices.changes(self.client, parsed_args)
        if not switches and not changes:
            raise exceptions.CommandError("say what to change: --enable, --disable, --tiering, or how many slices")
        known = self.client.get("hosts", parsed_args.host)
        if switches:
            wanted = {"enabled": parsed_args.enable, "generation": known["generation"]}
            if parsed_args.reason:
                wanted["disabled_reason"] = parsed_args.reason
            known = self.client.put("hosts", parsed_args.host, body=wanted)
        for what, change in changes:
            body = {**change, "generation": known["generation"]}
            known = self.client.put("hosts", parsed_args.host, what, body=body)
        return base.record(known, _SHOW)


class FenceHost(_OneHost):
    """Take the pool memory from a host that is dead, for others; its devices keep it out from now on"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the reason and --force."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--reason", metavar="<text>", required=True, help="How you know that the host is dead")
        parser.add_argument(
            "--force", action="store_true", help="Although its agent was heard of lately: its guests lose their memory"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the host; its Pool MiB is what a device has not confirmed yet.

        The host as it was just read is fenced, no later one: a request that is late finds it changed, and is refused.
        """
        wanted = {"reason": parsed_args.reason, "force": parsed_args.force}
        if self.client.knows("1.17"):
            wanted["generation"] = self.client.get("hosts", parsed_args.host)["generation"]
        return base.record(self.client.post("hosts", parsed_args.host, "fence", body=wanted), _SHOW)


class UnfenceHost(_OneHost):
    """Let a fenced host take part again, once its agent has reported that it holds nothing"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the host."""
        return base.record(self.client.post("hosts", parsed_args.host, "unfence", body={}), _SHOW)


class DeleteHost(base.Command):
    """Remove a host that is gone for good; refused with the list of what is left while anything of it is there"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the host and --wait."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="<host>", help="Name of the host (Nova's hypervisor hostname)")
        first = "First give the host no new memory, have it hold nothing for itself and take back what it lends"
        removal.add_options(parser, first)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Remove it, at once or as soon as it is empty."""
        drain = removal.HostDrain(self.client, parsed_args.host) if parsed_args.wait else None
        removal.remove(
            self.client,
            "hosts",
            parsed_args.host,
            timeout_seconds=removal.patience(parsed_args),
            drain=drain,
        )


class _AskHost(_OneHost):
    """Asks a host for something that goes on in the background."""

    verb: str

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add --wait."""
        parser = super().get_parser(prog_name)
        operation.add_options(parser)
        return parser

    def ask(self, parsed_args: argparse.Namespace, wanted: dict[str, Any]) -> Any:
        """Return the operation: as it began, or with --wait as it ended."""
        asked = operation.Asked(self.client, parsed_args.host, self.verb, {**wanted, "operation_id": str(uuid4())})
        told = asked.send()
        return base.record(asked.follow(told, parsed_args.timeout) if parsed_args.wait else told, operation.FIELDS)


class DelegateHost(_AskHost):
    """Have a host lend memory to others, as much as it can spare"""

    verb = "delegate"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the amount and the kind."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--mib", metavar="<mib>", type=int, required=True, help="What it shall lend in all, in MiB")
        parser.add_argument(
            "--kind",
            metavar="<kind>",
            choices=operation.KINDS,
            default="active",
            help="active: a host with guests (default); zombie: one that sleeps soon, while its memory serves",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the operation."""
        return self.ask(parsed_args, {"mib": parsed_args.mib, "kind": parsed_args.kind})


class ReclaimHost(_AskHost):
    """Have a host take back memory that it lends; its borrowers go on from their mirrors"""

    verb = operation.RECLAIM

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the amount and the deadline."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--mib", metavar="<mib>", type=int, required=True, help="What it shall take back, in MiB")
        parser.add_argument(
            "--seconds",
            metavar="<seconds>",
            type=float,
            help="Seconds that its borrowers have, then it takes the memory by force (default: set at the host)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the operation."""
        deadline = {} if parsed_args.seconds is None else {"seconds": parsed_args.seconds}
        return self.ask(parsed_args, {"mib": parsed_args.mib, **deadline})
