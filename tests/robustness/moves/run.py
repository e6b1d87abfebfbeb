"""One run: live migrations of one guest to and fro, each with a death, and what all parts have afterwards."""

import time
from collections.abc import Callable
from dataclasses import replace

from keystoneauth1.exceptions import ClientException
from openstack.exceptions import SDKException
from oslo_messaging import MessagingException

from pondstack.domain.errors import PondError
from pondstack_rack.daemon import DaemonFailed
from pondstack_rack.rack import Rack
from pondstack_rack.wait import wait_until
from tests.rack.remote_guest import MOVING_REMOTE_MIB, lent
from tests.robustness.left_by_nova import LeftByNova
from tests.robustness.mitigations.rack import Processes
from tests.robustness.moves import judge
from tests.robustness.moves.guest import SIZES, MovingGuest
from tests.robustness.moves.lost_source import LostSource
from tests.robustness.moves.plan import COMPUTES, Kill
from tests.robustness.moves.rack import Victims
from tests.robustness.moves.report import Outcome, Run
from tests.robustness.moves.strike import Blow, Striker

LENT_MIB = 2 * MOVING_REMOTE_MIB
"""Where it moves to it borrows anew, before it gives back what it has."""
TRIES = 4
"""So many migrations are begun to meet one step: some last for less than a look."""
END_SECONDS = 420.0
AGREE_SECONDS = 180.0
NOVA_SECONDS = 480.0
"""Where a nova-compute died: Nova's own migration counts as under way for 300 s."""

Say = Callable[[str], None]
_NO_ANSWER = (ClientException, PondError, MessagingException)


class Runner:
    """Of one rack that is up."""

    def __init__(
        self, rack: Rack, processes: Processes, plan: list[Kill], say: Say, *, loses_source: bool = False
    ) -> None:
        """`loses_source`: at the end, too; on a rack whose guests do not wait for their sources for long."""
        self._rack, self._processes, self._plan, self._say = rack, processes, plan, say
        self._loses_source = loses_source
        self._left = LeftByNova(rack)
        self._outcomes: list[Outcome] = []

    def run(self, seed: int, early: Callable[[], bool] = lambda: False) -> Run:
        """Do all of the plan, or what there is until `early` says to stop; returns what came of it."""
        begun = time.monotonic()
        with lent(self._rack, LENT_MIB) as remote:
            self._left.find_providers()
            guest = MovingGuest(remote, self._left)
            for kill in self._plan:
                if early():
                    break
                outcome = self._one(kill, guest)
                self._outcomes.append(outcome)
                self._say(_line(outcome))
            lost = self._lose_source(guest) if self._loses_source else []
            unclean = lost + self._end(guest)
        return Run(seed, len(self._plan), self._outcomes, unclean, time.monotonic() - begun)

    def _one(self, kill: Kill, guest: MovingGuest) -> Outcome:
        outcome = Outcome(kill)
        for tries in range(1, TRIES + 1):
            try:
                outcome = self._move(kill, guest)
            except (DaemonFailed, AssertionError, SDKException, *_NO_ANSWER) as error:
                outcome = Outcome(kill, guest.server, broken=(f"{type(error).__name__}: {error}"[:500],))
            outcome = replace(outcome, tries=tries)
            if outcome.broken:
                self._replace(guest)
            if outcome.end or outcome.broken:
                break
        return outcome

    def _move(self, kill: Kill, guest: MovingGuest) -> Outcome:
        self._processes.wait_healthy()
        guest.boot()
        source = guest.remote.host
        [destination] = [host for host in guest.hosts if host != source]
        begun = time.monotonic()
        blow = Striker(Victims(self._rack, self._processes), guest).strike(kill, source, destination)
        left: list[str] = []
        if not wait_until(lambda: self._tended(kill, guest, left) and not guest.is_moving(), END_SECONDS, 0.5):
            return Outcome(kill, guest.server, broken=(f"Nova still moves it after {END_SECONDS:.0f} s",))
        broken = self._agreed(kill, guest, left)
        if not broken and (said := guest.verifies()):
            broken = [said]
        end = _end(blow, source, guest.remote.host)
        seconds = round(time.monotonic() - begun, 1)
        service = blow.service if blow else ""
        return Outcome(kill, guest.server, service, end, seconds, left_by_nova=tuple(left), broken=tuple(broken))

    def _agreed(self, kill: Kill, guest: MovingGuest, left: list[str]) -> list[str]:
        """Return what is still wrong once there was time to agree; `left` gets what Nova left behind."""
        wrong: list[str] = []

        def agreed() -> bool:
            nonlocal wrong
            try:
                self._tended(kill, guest, left)
                seen = guest.look()
                wrong = judge.broken(seen, guest.provider(seen.host), SIZES) + self._left.disagreements()
                if wrong and kill.victim in COMPUTES:
                    left.extend(self._left.put_right(guest.server, seen.host, seen.task, seen.domains))
            except _NO_ANSWER as error:
                wrong = [f"the rack does not answer: {error}"]
            return not wrong

        wait_until(agreed, NOVA_SECONDS if kill.victim in COMPUTES else AGREE_SECONDS, 1.0)
        return wrong

    def _tended(self, kill: Kill, guest: MovingGuest, left: list[str]) -> bool:
        """Do what Nova's operator does where a nova-compute died: a server is not left in ERROR."""
        if kill.victim not in COMPUTES:
            return True
        try:
            if self._left.reset_error(guest.server):
                left.append(f"server {guest.server} in ERROR")
        except ClientException:
            return False
        return True

    def _lose_source(self, guest: MovingGuest) -> list[str]:
        """Lose the host that it comes from; returns what was not as it has to be."""
        try:
            found = LostSource(Victims(self._rack, self._processes), guest, self._say).run()
        except (DaemonFailed, AssertionError, SDKException, *_NO_ANSWER) as error:
            found = [f"{type(error).__name__}: {error}"[:500]]
        return [f"where its source was lost: {item}" for item in found]

    def _replace(self, guest: MovingGuest) -> None:
        """Have the next move be one of a new guest: this one is not as it should be."""
        try:
            guest.forget()
        except (DaemonFailed, ClientException) as error:
            self._say(f"a guest that is not as it should be stays: {error}")

    def _end(self, guest: MovingGuest) -> list[str]:
        """Delete the server, and return what is left of it then."""
        self._replace(guest)
        wrong = ["nothing was seen"]

        def clean() -> bool:
            nonlocal wrong
            try:
                wrong = guest.remains() + self._left.disagreements()
            except _NO_ANSWER as error:
                wrong = [f"the rack does not answer: {error}"]
            return not wrong

        wait_until(clean, AGREE_SECONDS, 1.0)
        return wrong


def _end(blow: Blow | None, source: str, now: str) -> str:
    if blow is None:
        return ""
    return "stayed" if now == source else "moved"


def _line(outcome: Outcome) -> str:
    """Return one line for people."""
    kill = outcome.kill
    end = f"{outcome.end} in {outcome.seconds:.1f} s" if outcome.end else "not met"
    nova = f"; Nova left: {', '.join(outcome.left_by_nova)}" if outcome.left_by_nova else ""
    broken = f"; BROKEN: {'; '.join(outcome.broken)}" if outcome.broken else ""
    away = f" for {kill.away_seconds:g} s" if outcome.service else ""
    return f"{kill.number + 1}: {kill.step}, {kill.act} {kill.victim}{away}: {end}{nova}{broken}"
