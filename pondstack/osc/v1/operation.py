"""What a host was asked to lend or to take back: it goes on in the background, and --wait follows it."""

import argparse
import sys
import threading
import time

from osc_lib import exceptions

from pondstack.domain.printable import escaped
from pondstack.osc.client import ApiError, Document, MemoryClient
from pondstack.osc.v1 import base
from pondstack.osc.v1.columns import Maybe, operation_text

KINDS = ("active", "zombie")
RECLAIM = "reclaim"
"""The verb, in paths, by which a host takes back what it lends."""
POLL_SECONDS = 0.5
WAIT_SECONDS = 300
"""How long --wait follows an operation, unless --timeout says otherwise."""

FIELDS: base.Fields = {
    "Operation": ("operation_id", None),
    "Verb": ("verb", None),
    "State": ("state", None),
    "MiB": ("mib", None),
    "Done MiB": ("done_mib", None),
    "Reason": ("reason", Maybe),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --wait and --timeout."""
    parser.add_argument("--wait", action="store_true", help="Follow until it is done; exits 1 when it is less")
    parser.add_argument(
        "--timeout",
        metavar="<seconds>",
        type=float,
        default=WAIT_SECONDS,
        help=f"Seconds after which --wait gives up; the host goes on (default {WAIT_SECONDS})",
    )


class Asked:
    """A request to a host; its operation id is the caller's, so that it can be repeated."""

    def __init__(self, client: MemoryClient, host: str, verb: str, body: Document) -> None:
        self._client, self._host, self._verb, self._body = client, host, verb, body
        self._shown = ""

    def send(self) -> Document:
        """Ask, or ask again: the host does it once, and answers how far it is."""
        return self._client.post("hosts", self._host, self._verb, body=self._body)

    def follow(self, told: Document, timeout_seconds: float) -> Document:
        """Return the operation when it is done, with its progress on stderr.

        Raises CommandError when it is less than was asked for, or not done in time.
        """
        ends = time.monotonic() + timeout_seconds
        pause = threading.Event()
        self._show(told)
        while told["state"] != "done":
            if time.monotonic() >= ends:
                self._end_line()
                raise exceptions.CommandError(
                    f"{self._host} is not done after {timeout_seconds:g} s and goes on ({operation_text(told)}): look "
                    f"at `openstack memory lender show {self._host}`"
                )
            pause.wait(min(POLL_SECONDS, max(ends - time.monotonic(), 0.0)))
            told = self._look() or told
            self._show(told)
        self._end_line()
        if told["done_mib"] < told["mib"]:
            reason = told["reason"] or "the host gives no reason"
            raise exceptions.CommandError(
                f"{self._host} is done with {told['done_mib']} of {told['mib']} MiB only: {reason}"
            )
        return told

    def _look(self) -> Document | None:
        """Return how far the host is; None while nobody can say."""
        try:
            return self._told_by_lender() or self.send()
        except ApiError as error:
            if error.status != 503:
                raise
            return None

    def _told_by_lender(self) -> Document | None:
        """Return the operation as the lender shows it.

        None when it does not: it lends nothing yet, or nothing any more, or its agent has not reported since.
        """
        try:
            operations: list[Document] = self._client.get("lenders", self._host)["operations"]
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        return next((item for item in operations if item["operation_id"] == self._body["operation_id"]), None)

    def _show(self, told: Document) -> None:
        """Show progress: a line that the next one replaces on a terminal, elsewhere a line for each change."""
        text = escaped(f"{self._host}: {operation_text(told)}")
        if text == self._shown:
            return
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr)
        self._shown = text

    @staticmethod
    def _end_line() -> None:
        """Leave the last line of progress on a terminal."""
        if sys.stderr.isatty():
            print(file=sys.stderr)
