"""openstack memory host suspend and wake."""

import argparse
from typing import Any
from uuid import uuid4

from pondstack.osc.client import Document, MemoryClient
from pondstack.osc.v1 import base
from pondstack.osc.v1.columns import Maybe, YesNo, sleep_text
from pondstack.osc.v1.progress import Progress

WAIT_SECONDS = 900
"""How long --wait follows a host, unless --timeout says otherwise: its memory has to leave Nova, or to come back."""
DRIVERS = ("sz", "lowpower-s0", "s3", "off", "frozen")
_FIELDS: base.Fields = {
    "State": ("state", None),
    "Driver": ("driver", None),
    "Serves": ("serves", YesNo),
    "Emulated": ("emulated", YesNo),
    "Lent MiB": ("lent_mib", None),
    "Reason": ("reason", Maybe),
    "Created At": ("created_at", None),
    "Ended At": ("ended_at", Maybe),
}


class _SleepCommand(base.ShowCommand):
    verb: str
    good: tuple[str, ...]
    """The states in which --wait has what it waited for."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the host and --wait."""
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="<host>", help="Name of the host (Nova's hypervisor hostname)")
        parser.add_argument("--wait", action="store_true", help="Follow until it is so; exits 1 when it ends otherwise")
        parser.add_argument(
            "--timeout",
            metavar="<seconds>",
            type=float,
            default=WAIT_SECONDS,
            help=f"Seconds after which --wait gives up; the host goes on (default {WAIT_SECONDS})",
        )
        return parser

    def ask(self, parsed_args: argparse.Namespace, wanted: Document) -> Any:
        """Return the sleep: as it is by then, or with --wait as it is at last."""
        body = {**wanted, "operation_id": str(uuid4())}
        told = self.client.post("hosts", parsed_args.host, self.verb, body=body)["sleep"]
        if parsed_args.wait:
            told = SleepProgress(self.client, parsed_args.host, told).follow(parsed_args.timeout, self.good)
        return base.record(told, _FIELDS)


class SuspendHost(_SleepCommand):
    """Put an empty host to sleep; Nova places nothing there, and it lends its memory meanwhile"""

    verb, good = "suspend", ("asleep",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add how."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--mib", metavar="<mib>", type=int, help="What it lends meanwhile, in MiB (default: all that it can spare)"
        )
        parser.add_argument(
            "--driver",
            metavar="<driver>",
            choices=DRIVERS,
            help="sz, lowpower-s0: its memory serves; s3, off: it lends nothing; frozen: an emulation for tests, "
            "nothing is saved (default: set at the controllers)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the sleep."""
        wanted = {"mib": parsed_args.mib, "driver": parsed_args.driver}
        return self.ask(parsed_args, {name: value for name, value in wanted.items() if value is not None})


class WakeHost(_SleepCommand):
    """Wake a host, or stop it from falling asleep; Nova may place servers there once its memory is back"""

    verb, good = "wake", ("awake", "aborted")

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the sleep."""
        return self.ask(parsed_args, {})


class SleepProgress(Progress):
    """A host that falls asleep or wakes."""

    def __init__(self, client: MemoryClient, host: str, told: Document) -> None:
        super().__init__(client, told)
        self._host = host

    @property
    def name(self) -> str:
        """The host's."""
        return self._host

    @property
    def command(self) -> str:
        """That shows it."""
        return f"host show {self._host}"

    def ask(self) -> Document:
        """Ask for the host's newest sleep."""
        found: Document = self.client.get("hosts", self._host)["sleep"]
        return found

    def text(self) -> str:
        """Return how far it is."""
        return sleep_text(self.told)

    def follow(self, timeout_seconds: float, good: tuple[str, ...]) -> Document:
        """Return it when it is in a `good` state; raises CommandError where it ended otherwise, or not in time."""
        told = self.until(lambda told: told["state"] in good or told["ended_at"] is not None, timeout_seconds)
        return self.check(told["state"] in good)
