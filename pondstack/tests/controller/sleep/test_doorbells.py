"""Who is connected to the doorbell of a host before it sleeps, and by what it is called when it is to wake."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import oslo_messaging
import pytest

from pondstack.clients.nova import ComputeService
from pondstack.controller.sleep.actor import Actor
from pondstack.controller.sleep.doorbells import Doorbells, ringers
from pondstack.controller.sleep.keeper import SleepKeeper
from pondstack.controller.sleep.observer import suspension
from pondstack.domain.errors import HostUnusable, NotFound, Unavailable
from pondstack.domain.host_sleep import DISABLED_REASON, HostSleep, SleepState, Work
from pondstack.domain.host_sleep_step import Act, Limits, PowerWord, Seen, Service, Step, decide
from pondstack.domain.rack import HostReport, RackView
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore
from tests.fixtures.played_plans import PlayedNova

pytestmark = pytest.mark.unit

S = SleepState
ITEM = HostSleep("0f9d7a52-6c1e-4b3f-8a27-d4e5c6b7a820", "h1", "lowpower-s0", S.WAKING, work=Work(ringers=("h2", "h3")))


class Agents:
    """All agents and wakers, of which some do not; `told`: what they were, in order."""

    def __init__(self, **errors):
        self.told, self.errors, self.operation = [], errors, ""

    def arm_doorbell(self, host, *, epoch, operation_id, ringers):
        self._tell("arm", host, epoch)
        self.operation = operation_id
        return {name: {"for": name} for name in ringers}

    def connect_doorbell(self, host, *, epoch, operation_id, sleeper, ring):
        self._tell("connect", host, epoch)
        assert (operation_id, ring, sleeper) == (self.operation, {"for": host}, "h1")

    def ring_doorbell(self, host, *, epoch, operation_id, sleeper):
        self._tell("ring", host, epoch)
        assert (operation_id, sleeper) == (self.operation or suspension(ITEM), "h1")

    def suspend(self, host, *, epoch, operation_id, driver):
        self._tell("suspend", host, epoch)
        assert operation_id in (self.operation, suspension(ITEM)) or not self.operation
        assert driver in ("lowpower-s0", "sz")

    def wake(self, host):
        self._tell("bus", host, None)

    def _tell(self, verb, host, epoch):
        assert epoch in (None, 7, 1)
        self.told.append((verb, host))
        if error := self.errors.get(f"{verb}_{host}"):
            raise error


def actor(agents, candidates=("h3", "h2"), bmcs=None):
    ledger = SimpleNamespace(epoch=7)
    doorbells = Doorbells(agents, agents, lambda _host: candidates)
    nothing = lambda *_words: None  # noqa: E731
    return Actor(
        ledger, None, agents, agents, bmcs or {}, lends=None, admit=nothing, fence=nothing, doorbells=doorbells
    )


def suspended(agents, item=ITEM, **how):
    item = replace(item, state=S.SUSPENDING, work=Work())
    return actor(agents, **how).act(item, Step(Act.SUSPEND, S.SUSPENDING), Seen()).ringers


def called_by(agents, item=ITEM, **how):
    return actor(agents, **how).act(item, Step(Act.WAKE, S.WAKING, called=True), Seen()).called_by


def test_others_are_connected_before_a_host_is_told_to_sleep():
    agents = Agents()
    assert suspended(agents) == ("h2", "h3")
    assert agents.told == [("arm", "h1"), ("connect", "h2"), ("connect", "h3"), ("suspend", "h1")]
    assert agents.operation == suspension(ITEM)


@pytest.mark.parametrize(
    ("errors", "connected"),
    [
        ({"arm_h1": HostUnusable("no transport")}, ()),
        ({"arm_h1": oslo_messaging.RPCVersionCapError(version="1.18", version_cap="1.17")}, ()),
        ({"connect_h2": Unavailable("no route")}, ("h3",)),
        ({"connect_h2": oslo_messaging.MessagingTimeout()}, ("h3",)),
    ],
)
def test_a_host_sleeps_without_a_doorbell_as_well(errors, connected):
    agents = Agents(**errors)
    assert suspended(agents) == connected
    assert agents.told[-1] == ("suspend", "h1")


def test_nobody_is_asked_where_nobody_can_ring_or_its_driver_has_no_doorbell():
    for agents, how in (
        (Agents(), {"candidates": ()}),
        (Agents(), {"item": replace(ITEM, driver="sz")}),
    ):
        suspended(agents, **how)
        assert agents.told == [("suspend", "h1")]


def test_it_is_rung_for_first_and_by_one_host():
    agents = Agents()
    assert called_by(agents) == "its doorbell, which host h2 has rung"
    assert agents.told == [("ring", "h2")]


def test_where_one_host_cannot_ring_the_next_one_does():
    agents = Agents(ring_h2=NotFound("its agent was restarted"))
    assert called_by(agents) == "its doorbell, which host h3 has rung"


def test_where_nobody_can_ring_it_is_called_over_the_bus():
    agents = Agents(ring_h2=NotFound("gone"), ring_h3=oslo_messaging.MessagingTimeout())
    assert called_by(agents) == "the bus"
    assert [verb for verb, _host in agents.told] == ["ring", "ring", "bus"]


def test_who_did_not_wake_by_a_ring_is_called_over_the_bus_the_next_time():
    """Nobody answers a ring."""
    again = replace(ITEM, work=replace(ITEM.work, calls=1))
    assert called_by(agents := Agents(), again) == "the bus"
    assert agents.told == [("bus", "h1")]
    assert called_by(Agents(bus_h1=oslo_messaging.MessagingTimeout()), again).startswith("its doorbell")


def test_where_neither_reaches_it_its_bmc_does():
    orders = []
    bmcs = {"h1": SimpleNamespace(wake=lambda: orders.append("wake"))}
    silent = Agents(ring_h2=NotFound(""), ring_h3=NotFound(""), bus_h1=oslo_messaging.MessagingTimeout())
    assert called_by(silent, bmcs=bmcs) == "its BMC"
    assert orders == ["wake"]


def test_an_operator_is_told_by_what_a_host_was_woken():
    item = replace(ITEM, work=replace(ITEM.work, called_by="the bus"))
    awake = Seen(power=PowerWord("woken"))
    assert decide(item, awake, Limits()).reason == "woken by the bus"
    assert decide(ITEM, awake, Limits()).reason == ""
    ending = replace(item, reason="it failed", work=replace(item.work, ending="failed"))
    assert decide(ending, awake, Limits()).reason == "it failed"


def test_who_rings_is_awake_and_borrows_if_anybody_does():
    def host(name, **how):
        return HostReport(name, True, "", None, how.pop("age", 1.0), **how)

    hosts = (
        host("h1"),
        host("h2"),
        host("h3", borrowed={"links": [["h1", "i1"]]}),
        host("h4", age=100.0),
        host("h5", fenced="dead"),
        host("h6", sleep=ITEM),
        host("h7"),
    )
    view = RackView(hosts={item.name: item for item in hosts})
    assert ringers(view, "h1", 9, 20.0) == ("h3", "h2", "h7")
    assert ringers(view, "h1", 1, 20.0) == ("h3",)
    assert ringers(view, "h1", 0, 20.0) == ()


def test_the_next_leader_knows_who_rings():
    """It is in the ledger before the host sleeps; and what wakes it, until it is awake."""
    store = MemoryStore()
    ledger, nova, agents = MemoryLedger(store, take_over(store)), PlayedNova(), Agents()
    nova.services["h1"] = ComputeService("id", "h1", False, DISABLED_REASON, True)
    ledger.hosts.heartbeat(report("h1", pools=[]))
    uuid = ledger.host_sleeps.begin("0f9d7a52-6c1e-4b3f-8a27-d4e5c6b7a821", "h1", "lowpower-s0", Work())
    for state in (S.LENDING, S.SUSPENDING):
        ledger.host_sleeps.advance(ledger.host_sleeps.get(uuid), Step(Act.WAIT, state))
    seen = {
        S.SUSPENDING: Seen(power=PowerWord("woken", mine=False)),
        S.ASLEEP: Seen(report_age=3600.0),
        S.WAKING: Seen(),
        S.RECLAIMING: Seen(),
        S.ENABLING: Seen(service=Service(False, DISABLED_REASON)),
    }

    def leads():
        doorbells = Doorbells(agents, agents, lambda _host: ("h2",))
        made = Actor(
            ledger,
            nova,
            agents,
            agents,
            {},
            lends=None,
            admit=lambda: None,
            fence=lambda *_w: None,
            doorbells=doorbells,
        )
        observer = SimpleNamespace(look=lambda item: seen[item.state])
        return SleepKeeper(ledger, nova, None, observer, made, limits=Limits, executor=executor)

    with ThreadPoolExecutor(1) as executor:
        leads().run()
        assert ledger.host_sleeps.get(uuid).work.ringers == ("h2",)
        seen[S.SUSPENDING] = Seen(waker=True)
        leads().run()
        assert ledger.host_sleeps.get(uuid).state is S.ASLEEP
        leads().wake("h1")
        leads().run()
    after = ledger.host_sleeps.get(uuid)
    assert (after.state, after.work.called_by) == (S.WAKING, "its doorbell, which host h2 has rung")
    assert ("bus", "h1") not in agents.told
