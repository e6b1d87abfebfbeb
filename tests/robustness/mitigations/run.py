"""One run: mitigations one after the other, each with a kill at a named step, and what all parts have afterwards."""

import time
from collections.abc import Callable
from dataclasses import replace

from keystoneauth1.exceptions import ClientException

from pondstack.domain.errors import PondError
from pondstack.domain.mitigation import MitigationState
from pondstack.ledger.records import MitigationRecord
from pondstack_rack import proof
from pondstack_rack.daemon import DaemonFailed
from pondstack_rack.rack import Rack
from pondstack_rack.wait import wait_until
from tests.robustness.mitigations import judge
from tests.robustness.mitigations.plan import COMPUTES, Kill, Place, make_plan
from tests.robustness.mitigations.rack import Processes
from tests.robustness.mitigations.report import Outcome, Run
from tests.robustness.mitigations.servers import LOCAL_MIB, POOL_MIB, Seen, Servers
from tests.robustness.mitigations.strike import Striker, Watch

SLICES = 32
BATCH = 24
"""So many servers of fake computes are booted at a time; a mitigation that is undone gives its server back."""
TRIES = 4
"""So many mitigations are begun to meet one step: some last for less than a look."""
END_SECONDS = 600.0
AGREE_SECONDS = 180.0

Say = Callable[[str], None]


class Runner:
    """One run on a rack that is up."""

    def __init__(self, rack: Rack, processes: Processes, seed: int, count: int, say: Say) -> None:
        self._plan, self._seed, self._count, self._say = make_plan(seed, count), seed, count, say
        self._servers = Servers(rack)
        self._processes = processes
        self._striker = Striker(processes, self._servers)
        self._stock: list[str] = []
        self._used: list[str] = []
        self._outcomes: list[Outcome] = []

    def run(self, early: Callable[[], bool]) -> Run:
        """Do all of the plan, or what there is until `early` says to stop; returns what came of it."""
        begun = time.monotonic()
        self._servers.prepare()
        for kill in self._plan:
            if early():
                break
            outcome = self._one(kill)
            self._outcomes.append(outcome)
            self._say(_line(outcome))
        unclean = self._end()
        return Run(self._seed, self._count, self._outcomes, unclean, time.monotonic() - begun)

    def _one(self, kill: Kill) -> Outcome:
        outcome = Outcome(kill)
        for tries in range(1, TRIES + 1):
            server = ""
            try:
                server = self._server(kill.place)
                outcome = self._mitigation(kill, server)
            except (DaemonFailed, AssertionError, ClientException, PondError) as error:
                outcome = Outcome(kill, server, broken=(f"{type(error).__name__}: {error}"[:500],))
                self._used += [server] if server else []
            outcome = replace(outcome, tries=tries)
            if outcome.state or outcome.broken:
                break
        return outcome

    def _mitigation(self, kill: Kill, server: str) -> Outcome:
        before = self._servers.look(server, kill.place)
        watch = Watch(self._processes.reader, server)
        begun = time.monotonic()
        blow = self._striker.strike(kill, server, watch)
        left: list[str] = []
        wait_until(lambda: self._tended(kill, server, left) and _ended(watch.now()), END_SECONDS, 1.0)
        record = watch.now()
        seconds = time.monotonic() - begun
        if record is None or record.ended_at is None:
            seen = "not there" if record is None else f"{record.method} {record.state}: {record.reason}"
            return Outcome(kill, server, blow.service if blow else "", broken=(f"it is {seen} after {seconds:.0f} s",))
        broken = self._agreed(kill, server, before, record.state, left)
        if not broken and kill.place is Place.GUEST and (said := self._servers.beats_on(server)):
            broken = [said]
        stayed = None
        if kill.restart and record.state is MitigationState.DONE and not broken:
            broken = self._restarted(kill, server, before)
            stayed = not broken
        # One that is undone is one of the pool as before, and serves once more.
        again = record.state is not MitigationState.DONE and kill.place is Place.FAKE and not broken
        (self._stock if again else self._used).append(server)
        return Outcome(
            kill,
            server,
            blow.service if blow else "",
            str(record.state) if blow else "",
            record.reason,
            round(seconds, 2),
            stayed_local=stayed,
            left_by_nova=tuple(left),
            broken=tuple(broken),
        )

    def _agreed(self, kill: Kill, server: str, before: Seen, state: MitigationState, left: list[str]) -> list[str]:
        """Return what is still wrong once there was time to agree; `left` gets what Nova left behind."""
        wrong: list[str] = []

        def agreed() -> bool:
            nonlocal wrong
            try:
                self._tended(kill, server, left)
                after = self._servers.look(server, kill.place)
                provider = self._servers.providers[after.host]
                wrong = judge.broken(before, after, state, provider, POOL_MIB + LOCAL_MIB[kill.place])
                for status, given_up in self._servers.migrations_under_way(server):
                    said = f"Nova's migration is {status}"
                    if not given_up or kill.victim not in COMPUTES:
                        wrong.append(said)
                    elif said not in left:
                        left.append(said)
                wrong = wrong or self._disagreements()
                if wrong and kill.victim in COMPUTES:
                    orphans = self._servers.delete_orphans()
                    left.extend(f"claim of a migration that Nova gave up: {item}" for item in orphans)
            except ClientException as error:
                wrong = [f"the rack does not answer: {error}"]
            return not wrong

        wait_until(agreed, AGREE_SECONDS, 1.0)
        return wrong

    def _disagreements(self) -> list[str]:
        """Return what the parts of the rack disagree on, whatever server it is of."""
        found = self._servers.cloud.audit()["findings"]
        return [f"audit: {item['code']} {item['detail']}" for item in found if item["severity"] != "info"] + [
            f"Placement has a claim of no server: {item}" for item in self._servers.strangers()
        ]

    def _restarted(self, kill: Kill, server: str, before: Seen) -> list[str]:
        """Stop and start it; return why it is not local then."""
        self._servers.act(server, "os-stop", "SHUTOFF")
        self._servers.act(server, "os-start", "ACTIVE")
        wrong = self._agreed(kill, server, before, MitigationState.DONE, [])
        return [f"after stop and start: {item}" for item in wrong]

    def _tended(self, kill: Kill, server: str, left: list[str]) -> bool:
        """Do what Nova's operator does where a nova-compute was killed: a server is not left in ERROR."""
        if kill.victim not in COMPUTES:
            return True
        try:
            if self._servers.reset_error(server):
                left.append(f"server {server} in ERROR")
        except ClientException:
            return False
        return True

    def _server(self, place: Place) -> str:
        """Return a server with pool memory."""
        if place is Place.GUEST:
            self._servers.delete(self._used)
            self._used.clear()
            guest = self._servers.boot(place, self._servers.hosts[place][len(self._outcomes) % 2])
            self._servers.built(guest, place)
            return guest
        if not self._stock:
            self._refill()
        return self._stock.pop(0)

    def _refill(self) -> None:
        self._servers.delete(self._used)
        self._used.clear()
        self._processes.wait_healthy()
        left = sum(kill.place is Place.FAKE for kill in self._plan[len(self._outcomes) :])
        hosts = self._servers.hosts[Place.FAKE]
        booted = [self._servers.boot(Place.FAKE, hosts[turn % len(hosts)]) for turn in range(min(BATCH, left))]
        for server in booted:
            self._servers.built(server, Place.FAKE)
        self._stock = booted
        self._say(f"{len(booted)} servers booted on fake computes")

    def _end(self) -> list[str]:
        """Delete all servers, and return what is left of them then."""
        try:
            self._servers.delete([item["id"] for item in self._servers.cloud.servers(self._servers.prefix)])
        except DaemonFailed as error:
            return [str(error)]
        wrong = ["nothing was seen"]

        def clean() -> bool:
            nonlocal wrong
            try:
                state = proof.look(self._servers.cloud, self._servers.prefix)
                wrong = proof.leaks(None, state)
                wrong += [
                    f"{item.name}: {item.free} of {item.slices_total} slices are free"
                    for item in state.pools.values()
                    if item.free < item.slices_total
                ]
                wrong += [f"Placement has a claim of no server: {item}" for item in self._servers.strangers()]
            except ClientException as error:
                wrong = [f"the rack does not answer: {error}"]
            return not wrong

        wait_until(clean, AGREE_SECONDS, 1.0)
        return wrong


def _ended(record: MitigationRecord | None) -> bool:
    return record is not None and record.ended_at is not None


def _line(outcome: Outcome) -> str:
    """Return one line for people."""
    kill = outcome.kill
    end = f"{outcome.state} in {outcome.seconds:.1f} s" if outcome.state else "not met"
    local = "" if outcome.stayed_local is None else f", local after stop and start: {outcome.stayed_local}"
    nova = f"; Nova left: {', '.join(outcome.left_by_nova)}" if outcome.left_by_nova else ""
    broken = f"; BROKEN: {'; '.join(outcome.broken)}" if outcome.broken else ""
    return f"{kill.number + 1}: {kill.step.name} ({kill.place}), kill -9 {kill.victim}: {end}{local}{nova}{broken}"
