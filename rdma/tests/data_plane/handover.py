"""Two data planes on one host that hand a guest over, as the agents of two hosts would have them do it."""

import secrets
from pathlib import Path
from typing import Any

from pondstack_rack.wait import wait_until

from .processes import DEADLINE_SECONDS, GUEST, DataPlane, Guest, StandinGuest

HOST = "127.0.0.1"
DEADLINE_MS = 60000
"""Longer than what the machine may stand still for; tests of silence have a shorter one."""


class Handover:
    """Of one guest, with the stand-ins for it on both sides."""

    def __init__(self, source: DataPlane, destination: DataPlane, deadline_ms: int = DEADLINE_MS) -> None:
        self.source, self.destination, self.deadline_ms = source, destination, deadline_ms
        self.key = secrets.token_hex(32)

    def offer(self, **more: Any) -> int:
        """Have the source offer its guest; the port it listens on."""
        request = {"host": HOST, "key": self.key, "deadline_ms": self.deadline_ms}
        port: int = self.source.ask(verb="hand_over", guest=GUEST, **(request | more))["handover"]["port"]
        return port

    def attach(self, guest: Guest, mirror: Path, limit_mib: int, port: int, /, **settings: Any) -> dict[str, Any]:
        """Have the destination attach the guest that comes."""
        incoming = {"host": HOST, "port": port, "key": self.key, "deadline_ms": self.deadline_ms}
        return self.destination.attach(guest, mirror, limit_mib, **({"incoming": incoming} | settings))

    def await_source(self, state: str) -> None:
        """Wait until the source is so far."""
        assert wait_until(lambda: state_of(self.source) == state, DEADLINE_SECONDS, 0.01), self.source.view()

    def await_destination(self, state: str | None) -> None:
        """Wait until the destination is so far; None: done."""
        assert wait_until(lambda: state_of(self.destination) == state, DEADLINE_SECONDS, 0.01), self.destination.view()

    def switch(self) -> None:
        """Have the guest be the destination's, which has asked for it."""
        self.await_source("frozen")
        self.source.ask(verb="switched", guest=GUEST)

    def await_all(self) -> None:
        """Wait until the source has forgotten the guest, and the destination has it as any other one."""
        assert wait_until(lambda: not self.source.ask(verb="view")["guests"], DEADLINE_SECONDS, 0.01)
        self.await_destination(None)


def state_of(plane: DataPlane) -> str | None:
    """Return how far a hand-over is."""
    view = plane.view()
    state: str | None = view["handover"]["state"] if "handover" in view else None
    return state


def tell(before: StandinGuest, after: StandinGuest) -> None:
    """Have a guest know what another one, which works no more, has written."""
    before.exchange("e")
    after.exchange("i")
