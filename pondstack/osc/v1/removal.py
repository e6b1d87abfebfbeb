"""Removes a host or a pool: what is still there refuses it, and --wait asks again until nothing is."""

import argparse
import sys
import threading
import time
from collections.abc import Callable

from osc_lib import exceptions

from pondstack.domain.printable import escaped
from pondstack.osc.client import ApiError, MemoryClient
from pondstack.osc.v1 import operation

NOT_EMPTY = "pondstack.not_empty"
POLL_SECONDS = 0.5
WAIT_SECONDS = 600
"""How long --wait asks, unless --timeout says otherwise."""
REASON = "it is being removed"
"""Why --wait disabled a host."""


def add_options(parser: argparse.ArgumentParser, first: str) -> None:
    """Add --wait and --timeout; `first`: what --wait does before it waits."""
    parser.add_argument("--wait", action="store_true", help=f"{first}, then remove it as soon as nothing of it is left")
    parser.add_argument(
        "--timeout",
        metavar="<seconds>",
        type=float,
        default=WAIT_SECONDS,
        help=f"Seconds after which --wait gives up; what it began goes on (default {WAIT_SECONDS})",
    )


def patience(parsed_args: argparse.Namespace) -> float:
    """Return for how many seconds remove() shall ask."""
    return float(parsed_args.timeout) if parsed_args.wait else 0.0


def remove(
    client: MemoryClient, *path: str, timeout_seconds: float = 0.0, drain: Callable[[], object] | None = None
) -> None:
    """Remove an object; with a time-out go on asking until nothing of it is left, with what is left on stderr.

    `drain` is called before each attempt. Raises CommandError with the list of what is left.
    """
    ends = time.monotonic() + timeout_seconds
    pause, shown = threading.Event(), ""
    while True:
        try:
            if drain is not None:
                drain()
            client.delete(*path)
            return
        except ApiError as error:
            last = error
            if error.code != NOT_EMPTY and (error.status != 503 or not timeout_seconds):
                raise
        if time.monotonic() >= ends:
            if not timeout_seconds:
                raise last
            raise exceptions.CommandError(f"not removed after {timeout_seconds:g} s: {last}") from last
        # Seconds that grow are no progress.
        text = "".join(letter for letter in last.detail if not letter.isdigit())
        if text != shown:
            print(escaped(last.detail), file=sys.stderr)
        shown = text
        pause.wait(min(POLL_SECONDS, max(ends - time.monotonic(), 0.0)))


class HostDrain:
    """Has a host get no new memory, hold no slices, and take back what it lends; its guests are Nova's to move."""

    def __init__(self, client: MemoryClient, host: str) -> None:
        self._client, self._host = client, host
        self._disabled = self._emptied = self._asked = False

    def __call__(self) -> None:
        """Ask for what the host was not asked for yet; raises ApiError."""
        if not self._disabled:
            self._disable()
            self._disabled = True
        if not self._emptied:
            self._empty()
            self._emptied = True
        if not self._asked:
            self._asked = self._reclaim()

    def _disable(self) -> None:
        known = self._client.get("hosts", self._host)
        if known["enabled"]:
            wanted = {"enabled": False, "disabled_reason": REASON, "generation": known["generation"]}
            self._client.put("hosts", self._host, body=wanted)

    def _empty(self) -> None:
        known = self._client.get("hosts", self._host)
        for item in known.get("host_slices", ()):
            if item["wanted"]:
                what = {"pool_uuid": item["pool_uuid"], "purpose": item["purpose"], "count": 0}
                known = self._client.put(
                    "hosts", self._host, "slices", body={**what, "generation": known["generation"]}
                )

    def _reclaim(self) -> bool:
        """Return whether the host lends nothing, or takes it back now; not before it has done what it does now."""
        try:
            lent_mib = self._client.get("lenders", self._host)["lent_mib"]
            if lent_mib:
                self._client.post("hosts", self._host, operation.RECLAIM, body={"mib": lent_mib})
        except ApiError as error:
            if error.status not in (404, 409, 503):
                raise
            return error.status == 404
        return True
