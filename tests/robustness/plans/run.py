"""One run: a host is emptied and sleeps, is woken and takes its server again, with a death in each of these plans."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import psutil
from keystoneauth1.exceptions import ClientException
from openstack.exceptions import SDKException

from pondstack.domain.errors import PondError
from pondstack.domain.plan import ActionKind, Plan, PlanState
from pondstack_rack.daemon import DaemonFailed
from pondstack_rack.demo.consolidation import FULL, IDLE, LOW, OVERLOADED
from pondstack_rack.demo.host_load import HostLoad, host_load
from pondstack_rack.demo.verified_guest import SLOTS
from pondstack_rack.layout import RackError
from pondstack_rack.rack import Rack
from pondstack_rack.wait import wait_until
from tests.robustness.left_by_nova import LeftByNova
from tests.robustness.mitigations.rack import Processes
from tests.robustness.plans import judge
from tests.robustness.plans.hosts import Hosts
from tests.robustness.plans.orders import Orders
from tests.robustness.plans.plan import COMPUTES, Kill, Way
from tests.robustness.plans.report import Outcome, Run
from tests.robustness.plans.strike import Pair, Striker, Watch

TRIES = 4
"""So many plans are begun to meet one step: some last for less than a look."""
KNOWN_SECONDS = 120.0
"""So long it may take until controllers know what hosts play."""
END_SECONDS = 900.0
AGREE_SECONDS = 180.0
NOVA_SECONDS = 480.0
"""Where a nova-compute died: Nova's own migration counts as under way for 300 s."""
SETTINGS: Mapping[Way, dict[str, Any]] = {
    Way.DOWN: {"most_emptied": 1},
    Way.UP: {"most_emptied": 0, "selection": "least-memory"},
}

Say = Callable[[str], None]
_NO_ANSWER = (ClientException, SDKException, PondError)


class Runner:
    """Of one rack that is up."""

    def __init__(self, rack: Rack, processes: Processes, plan: list[Kill], say: Say) -> None:
        self._rack, self._processes, self._plan, self._say = rack, processes, plan, say
        self._left = LeftByNova(rack)
        self._hosts = Hosts(rack, processes, self._left)
        self._orders = Orders(rack.layout)
        self._striker = Striker(processes, self._hosts.stands_still)
        self._outcomes: list[Outcome] = []

    def run(self, seed: int, early: Callable[[], bool] = lambda: False) -> Run:
        """Do all of the plan, or what there is until `early` says to stop; returns what came of it."""
        begun = time.monotonic()
        self._left.find_providers()
        with host_load(self._rack.layout) as load:
            for kill in self._plan:
                if early():
                    break
                outcome = self._one(kill, load)
                self._outcomes.append(outcome)
                self._say(_line(outcome))
        unclean = self._end()
        return Run(seed, len(self._plan), self._outcomes, unclean, time.monotonic() - begun)

    def _one(self, kill: Kill, load: HostLoad) -> Outcome:
        outcome = Outcome(kill)
        for tries in range(1, TRIES + 1):
            try:
                pair = self._prepare(kill.step.way, load)
                outcome = self._carry_out(kill, pair, load)
            except (DaemonFailed, AssertionError, RackError, psutil.Error, *_NO_ANSWER) as error:
                outcome = Outcome(kill, broken=(f"{type(error).__name__}: {error}"[:500],))
            outcome = replace(outcome, tries=tries)
            if outcome.broken:
                self._start_anew()
            if outcome.end or outcome.broken:
                break
        return outcome

    # What a plan needs before it

    def _prepare(self, way: Way, load: HostLoad) -> Pair:
        """Have a host sleep, or all be awake; returns the host that sleeps, or is to, and the other one."""
        self._processes.wait_healthy()
        if not self._hosts.has_guest:
            self._wake_all()
        self._hosts.guest.beat(1)
        if way is Way.DOWN:
            self._wake_all()
            return self._pair(self._hosts.guest.host)
        if not self._hosts.sleeping():
            self._put_to_sleep(self._pair(self._hosts.guest.host), load)
        return self._pair(self._hosts.sleeping())

    def _put_to_sleep(self, pair: Pair, load: HostLoad) -> None:
        watch = Watch(self._processes.reader, self._decided(Way.DOWN, pair, load))
        self._orders.apply(watch.uuid)
        wait_until(lambda: _ended(watch.plan()), END_SECONDS, 0.5)
        plan = watch.plan()
        if plan is None or plan.state is not PlanState.DONE:
            raise DaemonFailed(f"{pair.sleeper} was not put to sleep before: {_told(plan)}")

    def _wake_all(self) -> None:
        sleeper = self._hosts.sleeping()
        if sleeper:
            self._orders.wake(sleeper)
            if not wait_until(lambda: not self._hosts.sleeping(), END_SECONDS, 0.5):
                raise DaemonFailed(f"{sleeper} does not wake within {END_SECONDS:.0f} s")

    def _pair(self, sleeper: str) -> Pair:
        [other] = [name for name in self._hosts.names if name != sleeper]
        return Pair(sleeper, other)

    # One plan

    def _carry_out(self, kill: Kill, pair: Pair, load: HostLoad) -> Outcome:
        """Have a plan decided and carried out, with a death at its step."""
        begun = time.monotonic()
        watch, service = self._struck(kill, pair, load)
        left: list[str] = []
        if not wait_until(lambda: self._tended(kill, left) and _ended(watch.plan()), END_SECONDS, 0.5):
            broken = [f"it has not ended after {END_SECONDS:.0f} s: {_told(watch.plan())}"]
        else:
            broken = self._agreed(watch, kill, pair, left)
        seconds = round(time.monotonic() - begun, 1)
        if not broken and self._hosts.guest.beat(SLOTS):
            broken = ["the guest read something else than it had written"]
        plan = watch.plan()
        end = str(plan.state) if plan is not None and service is not None else ""
        reason = plan.reason if plan is not None else ""
        return Outcome(kill, watch.uuid, service or "", end, reason, seconds, 1, tuple(left), tuple(broken))

    def _struck(self, kill: Kill, pair: Pair, load: HostLoad) -> tuple[Watch, str | None]:
        """Return a plan that is carried out, and the service that died, None: the step was not met."""
        reader, way = self._processes.reader, kill.step.way
        if kill.step.kind is None:
            with ThreadPoolExecutor(1) as beside:
                death = beside.submit(self._strike, kill, pair, Watch(reader))
                watch = Watch(reader, self._decided(way, pair, load))
                service = death.result()
            self._orders.apply(watch.uuid)
            return watch, service
        watch = Watch(reader, self._decided(way, pair, load))
        self._orders.apply(watch.uuid)
        return watch, self._strike(kill, pair, watch)

    def _strike(self, kill: Kill, pair: Pair, watch: Watch) -> str | None:
        return self._striker.strike(kill, pair, watch, self._orders.cancel)

    def _decided(self, way: Way, pair: Pair, load: HostLoad) -> str:
        """Play loads, and have plans decided until one does what it is for; returns it."""
        loads = {pair.sleeper: IDLE} if way is Way.DOWN else {pair.sleeper: FULL, pair.other: OVERLOADED}
        load.play({name: [(0.0, loads.get(name, LOW))] for name in self._rack.layout.all_hosts})
        wanted = _actions(way, pair)
        last: dict[str, Any] = {}

        def decided() -> bool:
            nonlocal last
            if last:
                self._orders.cancel(last["uuid"])
            last = self._orders.create(SETTINGS[way])
            return [(item["kind"], item["host"]) for item in last["actions"]] == wanted

        if not wait_until(decided, KNOWN_SECONDS, 1.0):
            raise DaemonFailed(f"no plan is as wanted, the last one: {_short(last)}")
        return str(last["uuid"])

    # Afterwards

    def _agreed(self, watch: Watch, kill: Kill, pair: Pair, left: list[str]) -> list[str]:
        """Return what is still wrong once there was time to agree; `left` gets what Nova left behind."""
        wrong: list[str] = []

        def agreed() -> bool:
            nonlocal wrong
            try:
                self._tended(kill, left)
                plan = self._processes.reader.plans.plan(watch.uuid)
                seen = self._hosts.look(plan, pair.sleeper, pair.other)
                wrong = judge.broken(seen, kill.step.way, pair.sleeper, pair.other) + self._left.disagreements()
                if wrong and kill.victim in COMPUTES:
                    left.extend(self._left.put_right(self._hosts.guest.server, seen.host, seen.task, seen.domains))
            except _NO_ANSWER as error:
                wrong = [f"the rack does not answer: {error}"]
            return not wrong

        wait_until(agreed, NOVA_SECONDS if kill.victim in COMPUTES else AGREE_SECONDS, 1.0)
        return wrong

    def _tended(self, kill: Kill, left: list[str]) -> bool:
        """Do what Nova's operator does where a nova-compute died: a server is not left in ERROR."""
        if kill.victim not in COMPUTES:
            return True
        server = self._hosts.guest.server
        try:
            if self._left.reset_error(server):
                left.append(f"server {server} in ERROR")
        except ClientException:
            return False
        return True

    def _start_anew(self) -> None:
        """Have the next plan be one of a new guest and hosts that are awake."""
        try:
            self._processes.wait_healthy()
            self._wake_all()
            self._hosts.forget()
        except (DaemonFailed, RackError, *_NO_ANSWER) as error:
            self._say(f"what is not as it should be stays: {error}")

    def _end(self) -> list[str]:
        """Wake who sleeps, delete the server, and return what is left then."""
        self._start_anew()
        wrong = ["nothing was seen"]

        def clean() -> bool:
            nonlocal wrong
            try:
                wrong = self._left.disagreements()
                wrong += [f"{name} sleeps" for name in [self._hosts.sleeping()] if name]
            except _NO_ANSWER as error:
                wrong = [f"the rack does not answer: {error}"]
            return not wrong

        wait_until(clean, AGREE_SECONDS, 1.0)
        return wrong


def _actions(way: Way, pair: Pair) -> list[tuple[str, str]]:
    """Return kinds and hosts of all that a plan is to do."""
    if way is Way.DOWN:
        return [(str(kind), pair.sleeper) for kind in (ActionKind.DISABLE, ActionKind.MIGRATE, ActionKind.SUSPEND)]
    return [(str(ActionKind.WAKE), pair.sleeper), (str(ActionKind.MIGRATE), pair.other)]


def _ended(plan: Plan | None) -> bool:
    return plan is not None and not plan.is_open


def _told(plan: Plan | None) -> str:
    if plan is None:
        return "the ledger does not tell"
    return f"{plan.state} {plan.reason}: " + "; ".join(
        f"{item.kind} {item.state} {item.reason}" for item in plan.actions
    )


def _short(plan: Mapping[str, Any]) -> str:
    return f"{[(item['kind'], item['host']) for item in plan['actions']]} {plan['reason']} {plan['left_out']}"


def _line(outcome: Outcome) -> str:
    """Return one line for people."""
    kill = outcome.kill
    end = f"{outcome.end} in {outcome.seconds:.1f} s" if outcome.end else "not met"
    why = f" ({outcome.reason})" if outcome.reason and outcome.end != "done" else ""
    nova = f"; Nova left: {', '.join(outcome.left_by_nova)}" if outcome.left_by_nova else ""
    broken = f"; BROKEN: {'; '.join(outcome.broken)}" if outcome.broken else ""
    return f"{kill.number + 1}: {kill.step.name}, kill -9 {kill.victim}: {end}{why}{nova}{broken}"
