"""Whole controllers, of which some do not reach the broker: its transport is broken for them, and for nobody else."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_messaging import MessagingTimeout

from pondstack.controller.leader.leader import Leader
from pondstack.controller.node.node import Node
from pondstack.controller.reconcile.reconciler import Reconciler
from pondstack.db.store import controllers
from pondstack.devices.emulated import create_device
from pondstack.domain.errors import Conflict

from .test_node import SECONDS, SERIAL, Clock, Nodes, eventually, roles

QUICK = {"broker_check_seconds": 0.1, "broker_silent_seconds": 10.0}
"""A hundred times what is needed: a slow machine is not taken for a broken one. What is broken lets the time pass."""

AGENT_DOWN_SECONDS = 30.0


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    create_device(tmp_path / "pool0", 4, serial=SERIAL)
    made = Nodes(tmp_path)
    yield made
    for node in made.values():
        node.stop()


@pytest.fixture
def pair(nodes: Nodes) -> Nodes:
    """`one` leads, `two` stands by; both reach the broker."""
    assert nodes.begin("one", **QUICK).wait_until_leading(SECONDS)
    nodes.begin("two", **QUICK)
    assert eventually(lambda: roles(nodes["one"]) == {"one": "leader", "two": "standby"})
    assert eventually(lambda: all(item.reached_seconds is not None for item in listed(nodes["one"]).values()))
    return nodes


class Broken:
    """Breaks what a controller sends, and has it wait for long. `hang`: a call does not even fail, until mend().

    An answer that is under way still comes, and is of before.
    """

    def __init__(self, node: Node, hang: bool = False, seconds: float = QUICK["broker_silent_seconds"] + 1) -> None:
        self._driver = node.resources.bus.transport._driver
        self._send: Callable[..., Any] = self._driver.send
        self._mended = threading.Event()
        self._driver.send = self._hang if hang else self._fail
        node.broker_probe._clock = self.clock = Clock(node.broker_probe._clock, seconds)

    def _fail(self, *_arguments: Any, **_named: Any) -> None:
        raise MessagingTimeout("the broker does not answer")

    def _hang(self, *_arguments: Any, **_named: Any) -> None:
        self._mended.wait(SECONDS)
        self._fail()

    def mend(self) -> None:
        """Let it send again."""
        self._driver.send = self._send
        self._mended.set()


def break_all(pair: Nodes, hang: bool = False) -> list[Broken]:
    """Break the stand-by, and the leader too once that has said so."""
    second = Broken(pair["two"], hang)
    assert eventually(lambda: listed(pair["one"])["two"].reached_seconds > QUICK["broker_silent_seconds"])
    return [Broken(pair["one"], hang), second]


def listed(node: Node) -> dict[str, Any]:
    return {item.name: item for item in node.resources.reader.controllers()}


def test_each_reaches_itself_and_says_so(pair) -> None:
    assert all(item.reached_seconds < SECONDS for item in listed(pair["one"]).values())
    assert not pair["one"].broker_probe.cut_off


@pytest.mark.parametrize("hang", [False, True], ids=["it fails", "it hangs"])
def test_a_leader_that_is_cut_off_hands_over_and_stands_by(pair, hang, caplog) -> None:
    broken = Broken(pair["one"], hang)
    assert pair["two"].wait_until_leading(SECONDS)
    assert "it hands over to two" in caplog.text
    assert eventually(lambda: "handed over to two" in caplog.text), "which is said after the other one leads"
    assert eventually(lambda: roles(pair["two"]) == {"one": "standby", "two": "leader"})
    assert listed(pair["two"])["one"].reached_seconds > QUICK["broker_silent_seconds"]
    with pytest.raises(Conflict, match="one does not reach the message broker"):
        pair["two"].failover("one")
    broken.mend()
    assert eventually(lambda: not pair["one"].broker_probe.cut_off)
    assert pair["two"].leader is not None
    assert pair["two"].candidate.epoch == 2


def test_a_leader_that_hangs_goes_on_renewing(pair, monkeypatch) -> None:
    """Until it hands over, and for ever when nobody reaches the broker: the lease's thread waits for no call."""
    both = break_all(pair, hang=True)
    assert eventually(lambda: all(node.broker_probe.cut_off for node in pair.values()))
    store, renewals = pair["one"].resources.leadership, list[int]()
    renew = store.renew
    monkeypatch.setattr(store, "renew", lambda *given: (renewals.append(1), renew(*given))[1])
    # Each of them is worth a lease, and the list is written at each report.
    first = listed(pair["two"])["one"].reached_seconds
    assert eventually(lambda: len(renewals) > 10 and listed(pair["two"])["one"].reached_seconds > first + 2.0)
    assert (pair["one"].candidate.epoch, pair["two"].candidate.epoch) == (1, None)
    for broken in both:
        broken.mend()


def test_a_broker_that_is_down_for_all_moves_no_lease(pair, caplog) -> None:
    both = break_all(pair)
    assert eventually(lambda: "it keeps the lead" in caplog.text)
    assert eventually(lambda: "another controller goes first" in caplog.text)
    assert (pair["one"].candidate.epoch, pair["two"].candidate.epoch) == (1, None)
    for broken in both:
        broken.mend()
    assert eventually(lambda: caplog.text.count("it keeps the lead") == 1 and not pair["one"].broker_probe.cut_off)


def test_alone_a_leader_keeps_the_lead(nodes) -> None:
    node = nodes.begin("one", **QUICK)
    assert node.wait_until_leading(SECONDS)
    broken = Broken(node)
    assert eventually(lambda: node.broker_probe.cut_off and node._step_aside._logged.startswith("it keeps the lead"))
    assert node.candidate.epoch == 1
    broken.mend()
    assert eventually(lambda: not node._step_aside._logged)


def test_one_of_a_release_that_does_not_check_itself_is_not_chosen(nodes) -> None:
    node = nodes.begin("one", **QUICK)
    assert node.wait_until_leading(SECONDS)

    def say(session: Any) -> None:
        controllers.record(session, "old", "old:1:x", role="standby", epoch=0, followed_sequence=0)

    node.resources.database.write(say)
    Broken(node)
    assert eventually(lambda: node._step_aside._logged.startswith("it keeps the lead"))
    assert node.leader is not None
    assert node._successor("old") == "old"  # an operator may know better


def test_a_deaf_leader_leaves_its_rounds_out(nodes, monkeypatch) -> None:
    """To it every agent would be silent, and what nobody claims for a moment would be taken from a running guest."""
    conf = nodes.conf("one", **QUICK)
    conf.set_override("agent_down_seconds", AGENT_DOWN_SECONDS, group="controller")
    conf.set_override("reconcile_interval_seconds", 1, group="controller")
    rounds, run = [], Reconciler.run

    def counted(self: Reconciler) -> Any:
        rounds.append(nodes["one"].broker_probe.receiving)
        return run(self)

    monkeypatch.setattr(Reconciler, "run", counted)
    nodes["one"] = node = Node(conf)
    node.start()
    assert eventually(lambda: bool(rounds))
    broken = Broken(node, seconds=AGENT_DOWN_SECONDS)
    begun = node.broker_probe.silent_seconds
    assert eventually(lambda: node.broker_probe.silent_seconds > begun + 1.0)  # a round that was under way is over
    before = len(rounds)
    assert eventually(lambda: node.broker_probe.silent_seconds > begun + 3.0)
    assert len(rounds) == before
    broken.mend()
    assert eventually(lambda: node.broker_probe.silent_seconds < 1.0)
    for _ in range(3):  # less at a time than would be another silence
        broken.clock.later += AGENT_DOWN_SECONDS / 3
        assert eventually(lambda: node.broker_probe.silent_seconds < 1.0)
    assert eventually(lambda: len(rounds) > before)
    assert all(rounds[before:])


def test_with_a_silence_of_0_the_lead_stays(nodes) -> None:
    node = nodes.begin("one", broker_check_seconds=0.1, broker_silent_seconds=0.0)
    assert node.wait_until_leading(SECONDS)
    nodes.begin("two", broker_check_seconds=0.1, broker_silent_seconds=0.0)
    Broken(node)
    assert eventually(lambda: node.broker_probe.silent_seconds > 1.0)
    assert not node.broker_probe.cut_off
    assert node.candidate.epoch == 1


def test_a_promotion_that_hangs_for_want_of_the_broker_is_handed_over_too(pair, monkeypatch) -> None:
    """`two` is promoted where it is cut off: it never opens, and `one` gets the lead back."""
    real, hangs = Leader.open, threading.Event()

    def opens(self: Leader) -> None:
        if self._conf.controller.name == "two":
            hangs.wait(SECONDS)
        real(self)

    monkeypatch.setattr(Leader, "open", opens)
    pair["one"].failover("two")
    assert eventually(lambda: pair["two"].candidate.epoch == 2)
    Broken(pair["two"])
    assert eventually(lambda: pair["one"].leader is not None and pair["one"].candidate.epoch == 3)
    hangs.set()
    assert pair["two"].leader is None


def test_of_several_the_command_chooses_one_that_reaches_the_broker(pair, nodes) -> None:
    nodes.begin("three", **QUICK)
    assert eventually(lambda: roles(pair["one"]).get("three") == "standby")
    broken = Broken(pair["two"])
    assert eventually(lambda: pair["two"].broker_probe.cut_off)
    assert eventually(lambda: pair["one"]._successor(None) == "three")
    broken.mend()


def test_a_stop_does_not_wait_for_a_call_that_hangs_for_ever(pair, monkeypatch) -> None:
    monkeypatch.setattr("pondstack.controller.node.node.STOP_SECONDS", 0.2)
    broken = Broken(pair["two"], hang=True)
    node = pair.pop("two")
    node.stop()
    assert roles(pair["one"])["two"] == "down"
    broken.mend()
