"""One death in the middle of a live migration: the data planes say when the step is there, then the victim dies.

Most steps last for some tenths of a second. The step is seen a few milliseconds before the act, and looked for once
more right before it: only then the act counts as one at that step.
"""

import threading
import time
from dataclasses import dataclass

from pondstack_agent.data_plane.views import GuestView
from tests.robustness.moves.guest import MovingGuest
from tests.robustness.moves.plan import Act, Kill, Step
from tests.robustness.moves.rack import Victims

MEET_SECONDS = 180.0
LOOK_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Blow:
    """An act that met its step. `service`: of whom, '' for an operator's abort."""

    service: str
    source: str
    destination: str


def step_of(source: GuestView | None, destination: GuestView | None) -> Step:
    """Return how far a migration is that was asked for; None: the data plane has no such guest, or does not answer."""
    there = destination.handover.state if destination and destination.handover else ""
    here = source.handover if source else None
    if there in ("taking", "complete"):
        return Step.FETCHING
    if here is not None and here.state == "offered":
        return Step.CONNECTED if here.connected else Step.OFFERED
    return Step.ASKED


class Striker:
    """Strikes by plan."""

    def __init__(self, victims: Victims, guest: MovingGuest) -> None:
        self._victims, self._guest = victims, guest

    def strike(self, kill: Kill, source: str, destination: str) -> Blow | None:
        """Migrate the guest, and strike at the step; None: the migration ended without being met there.

        Whoever was killed or frozen runs again when it returns.
        """
        if not self._guest.move() or not self._is_met(kill, source, destination):
            return None
        if kill.act is Act.ABORT:
            self._guest.abort()
            return Blow("", source, destination)
        service = self._victims.service(kill.victim, source, destination)
        if kill.act is Act.KILL:
            self._victims.kill(service)
            threading.Event().wait(kill.away_seconds)
            self._victims.processes.start(service)
        else:
            with self._victims.frozen(service):
                threading.Event().wait(kill.away_seconds)
        return Blow(service, source, destination)

    def _is_met(self, kill: Kill, source: str, destination: str) -> bool:
        ends = time.monotonic() + MEET_SECONDS
        while time.monotonic() < ends:
            if self._now(source, destination) is kill.step:
                threading.Event().wait(kill.wait_seconds)
                if self._now(source, destination) is kill.step:
                    return True
            elif not self._guest.is_moving():
                return False
            threading.Event().wait(LOOK_SECONDS)
        return False

    def _now(self, source: str, destination: str) -> Step:
        return step_of(self._guest.plane_view(source), self._guest.plane_view(destination))
