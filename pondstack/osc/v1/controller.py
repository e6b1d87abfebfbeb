"""openstack memory controller ..."""

import argparse
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from osc_lib import exceptions

from pondstack.domain.printable import escaped
from pondstack.osc.client import ApiError, Document
from pondstack.osc.v1 import base
from pondstack.osc.v1.columns import Maybe, YesNo

POLL_SECONDS = 0.2
WAIT_SECONDS = 60
"""How long --wait follows a fail-over, unless --timeout says otherwise."""

_LIST: base.Fields = {
    "Name": ("name", None),
    "Role": ("role", None),
    "Epoch": ("epoch", None),
    "Seen Seconds": ("seen_seconds", None),
    "Lag": ("lag", None),
    "Reaches Broker": ("reaches_broker", YesNo),
}
_SHOW: base.Fields = {
    **_LIST,
    "Reached Seconds": ("reached_seconds", Maybe),
    "Holder": ("holder", None),
    "Followed Sequence": ("followed_sequence", None),
    "Started At": ("started_at", None),
}
_BEGUN: base.Fields = {"From": ("from", None), "To": ("to", Maybe), "Epoch": ("epoch", None)}
_DONE: base.Fields = {**_BEGUN, "Leader": ("leader", None), "Away Seconds": ("away_seconds", None)}


class ListController(base.ListCommand):
    """List the controllers: which one leads, how far the others are behind, which ones reach the message broker"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        return base.table(self.client.list("controllers", limit=parsed_args.limit, marker=parsed_args.marker), _LIST)


class ShowController(base.ShowCommand):
    """Show a controller"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the controller."""
        parser = super().get_parser(prog_name)
        parser.add_argument("controller", metavar="<controller>", help="Name of the controller")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(self.client.get("controllers", parsed_args.controller), _SHOW)


class FailoverController(base.ShowCommand):
    """Have another controller lead; running guests do not notice"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the successor and --wait."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--to", metavar="<controller>", help="The controller that shall lead (default: any)")
        parser.add_argument("--wait", action="store_true", help="Follow until another controller leads")
        parser.add_argument(
            "--timeout",
            metavar="<seconds>",
            type=float,
            default=WAIT_SECONDS,
            help=f"Seconds after which --wait gives up (default {WAIT_SECONDS})",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return who hands over; with --wait also who leads now, and for how long changes were impossible."""
        started = time.monotonic()
        begun = self.client.post("controllers", "failover", body={"to": parsed_args.to})
        if not parsed_args.wait:
            return base.record(begun, _BEGUN)
        leader = self._until(lambda: self._leader_after(begun["epoch"]), begun, started, parsed_args.timeout)
        self._until(self._changes_work, begun, started, parsed_args.timeout)
        away = round(time.monotonic() - started, 1)
        epoch, name = leader["epoch"], escaped(leader["name"])
        print(f"{name} leads with epoch {epoch}; changes had to wait for {away} s or less", file=sys.stderr)
        return base.record({**begun, "leader": leader["name"], "away_seconds": away}, _DONE)

    def _until(self, look: Callable[[], Any], begun: Document, started: float, timeout_seconds: float) -> Any:
        """Return the first true answer of `look`; a 503 is none. CommandError when there is none in time."""
        pause = threading.Event()
        while True:
            try:
                found = look()
            except ApiError as error:
                if error.status != 503:
                    raise
                found = None
            seconds = time.monotonic() - started
            if found or seconds >= timeout_seconds:
                self._progress("")
                break
            self._progress(f"{begun['from']} hands over, for {seconds:.1f} s")
            pause.wait(POLL_SECONDS)
        if not found:
            raise exceptions.CommandError(
                f"{begun['from']} hands over, and no other controller leads after {seconds:.0f} s: "
                "look at `openstack memory controller list` and at the logs of pondstack-controller"
            )
        return found

    def _leader_after(self, epoch: int) -> Document | None:
        """Return the controller that leads with a later epoch, None while there is none."""
        leading = [controller for controller in self.client.list("controllers") if controller["role"] == "leader"]
        return next((controller for controller in leading if controller["epoch"] > epoch), None)

    def _changes_work(self) -> bool:
        """Set a host to what it is already, which changes nothing and needs a leader that is ready."""
        for host in self.client.list("hosts", limit=1):
            wanted = {"enabled": host["enabled"], "generation": host["generation"]}
            if not host["enabled"]:
                wanted["disabled_reason"] = host["disabled_reason"]
            try:
                self.client.put("hosts", host["name"], body=wanted)
            except ApiError as error:
                if error.status != 409:  # somebody else has changed the host, so changes work
                    raise
        return True

    @staticmethod
    def _progress(text: str) -> None:
        """Show a line that the next one replaces, where somebody looks."""
        if sys.stderr.isatty():
            print(f"\r\x1b[K{escaped(text)}", end="", file=sys.stderr, flush=True)
