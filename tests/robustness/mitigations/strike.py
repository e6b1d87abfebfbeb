"""One kill at a named step: the ledger says when a mitigation is there, its leader is held, the victim is killed."""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from pondstack.db.read.reader import SqlReader
from pondstack.domain.errors import PondError
from pondstack.domain.mitigation import MitigationMethod, MitigationState
from pondstack.ledger.records import MitigationRecord
from tests.robustness.held_leader import LOOK_SECONDS, MEET_SECONDS, hold_leader, let_go
from tests.robustness.mitigations.plan import Kill, Place, Step
from tests.robustness.mitigations.rack import Processes, go_on
from tests.robustness.mitigations.servers import Servers

ASKED = ("Nova was asked", "Nova works on the server: migrating")

_S = MitigationState


@dataclass(frozen=True, slots=True)
class Blow:
    """A kill that met its step. `service`: what was killed."""

    service: str
    source: str
    destination: str


def is_at(step: Step, record: MitigationRecord | None) -> bool:
    """Tell whether a mitigation is at a step."""
    if record is None or record.ended_at is not None or (record.method, record.state) != (step.method, step.state):
        return False
    if (step.method, step.state) != (MitigationMethod.MIGRATE, _S.MOVING):
        return True
    return record.reason.startswith(ASKED) is step.asked


class Watch:
    """Looks at the mitigation of a server that begins after this was made."""

    def __init__(self, reader: SqlReader, server: str) -> None:
        self._reader, self._server = reader, server
        self._known = {item.uuid for item in reader.mitigations(consumer=server)}

    def now(self) -> MitigationRecord | None:
        """Return it, None: it has not begun, or the database does not tell."""
        try:
            found = self._reader.mitigations(consumer=self._server)
        except PondError:
            return None
        return next((item for item in found if item.uuid not in self._known), None)

    def until(self, there: Callable[[MitigationRecord], bool], seconds: float) -> MitigationRecord | None:
        """Look until it is there; None when it has ended before, or the time is over."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            record = self.now()
            if record is not None and there(record):
                return record
            if record is not None and record.ended_at is not None:
                return None
            threading.Event().wait(LOOK_SECONDS)
        return None


class Striker:
    """Kills by plan."""

    def __init__(self, processes: Processes, servers: Servers) -> None:
        self._processes, self._servers = processes, servers

    def strike(self, kill: Kill, server: str, watch: Watch) -> Blow | None:
        """Mitigate a server and kill at the step; None when the mitigation ended without being met there.

        What was killed runs again when it returns.
        """
        self._processes.wait_healthy()
        source = self._servers.host_of(server)
        destination = next(host for host in self._servers.hosts[kill.place] if host != source)
        with ExitStack() as kept:
            self._hinder(kill, server, source, kept)
            _in_background(lambda: self._servers.mitigate(server, _asked_for(kill)))
            if kill.step.state is _S.UNDOING and kill.place is Place.FAKE:
                before = Step(kill.step.method, _S.MOVING)
                if watch.until(lambda record: is_at(before, record), MEET_SECONDS) is None:
                    return None
                _in_background(lambda: self._servers.abort(server))
            held = self._hold(kill, watch)
            if held is None:
                return None
            leader, pid = held
            service = self._processes.service_of(kill.victim, leader, source, destination)
            try:
                threading.Event().wait(kill.held_seconds)
                self._processes.kill(service)
            finally:
                let_go(pid)
        threading.Event().wait(kill.down_seconds)
        self._processes.start(service)
        return Blow(service, source, destination)

    def _hinder(self, kill: Kill, server: str, source: str, kept: ExitStack) -> None:
        """Make a step last that is over at once where nothing is slow; the hindrance ends with the kill."""
        if kill.step.method is MitigationMethod.MIGRATE and kill.step.state is _S.RELEASING:
            kept.enter_context(self._servers.slices_in_use(server))
        if kill.step == Step(MitigationMethod.COPY, _S.UNDOING) and kill.place is Place.FAKE:
            # Its agent would copy at once what has no pages, and nothing could be undone.
            kept.callback(go_on, self._processes.stop(f"pondstack-agent-{source}"))

    def _hold(self, kill: Kill, watch: Watch) -> tuple[str, int] | None:
        """Stop the leader at the step; returns its service and process. None when the mitigation has ended."""

        def look() -> bool | None:
            record = watch.now()
            return None if record is not None and record.ended_at is not None else is_at(kill.step, record)

        return hold_leader(self._processes, look, kill.run_seconds)


def _in_background(work: Callable[[], None]) -> None:
    """Ask, and look meanwhile: whoever answers may be held, or killed."""
    threading.Thread(target=work, daemon=True).start()


def _asked_for(kill: Kill) -> str | None:
    """Return the method: real guests go both ways, since their host refuses the copy."""
    return None if kill.place is Place.GUEST else str(kill.step.method)
