"""What a controller makes of the answers that come back from itself, and of those that do not."""

import logging
from collections.abc import Callable

import pytest
from oslo_messaging import MessagingTimeout

from pondstack.controller.node.broker_probe import BrokerProbe, StepAside
from pondstack.domain.errors import Unavailable
from pondstack.ha.broker import BrokerTerms, Peer

TERMS = BrokerTerms(check_seconds=1.0, silent_seconds=10.0)
AGENT_DOWN_SECONDS = 20.0
DEAF_SECONDS = TERMS.deaf_seconds(AGENT_DOWN_SECONDS)
FRESH, STALE = Peer("b", True, 1.0), Peer("b", True, 9.0)


class Observation:
    """A clock, a broker that answers or does not, and the others in the table."""

    def __init__(self) -> None:
        self.now = 100.0
        self.answers = True
        self.waited: list[float] = []
        self.peers: list[Peer] | Exception = []
        self.handed_over: list[tuple[int, str]] = []
        self.probe = BrokerProbe(self._ping, TERMS, lambda: self.now, AGENT_DOWN_SECONDS)
        self.step_aside = StepAside(
            self.probe, TERMS, peers=self._peers, hand_over=lambda *arguments: self.handed_over.append(arguments)
        )

    def _ping(self, seconds: float) -> None:
        self.waited.append(seconds)
        if not self.answers:
            self.now += seconds
            raise MessagingTimeout("no answer")

    def _peers(self) -> list[Peer]:
        if isinstance(self.peers, Exception):
            raise self.peers
        return self.peers

    def cut(self) -> None:
        """Be silent for longer than is borne."""
        self.probe.probe()
        self.answers = False
        self.now += TERMS.silent_seconds
        self.probe.probe()


@pytest.fixture
def world() -> Observation:
    return Observation()


@pytest.fixture
def levels(caplog: pytest.LogCaptureFixture) -> Callable[[], list[int]]:
    """The levels of what was logged at INFO and above."""
    caplog.set_level(logging.INFO, logger="pondstack.controller.node.broker_probe")
    return lambda: [record.levelno for record in caplog.records]


def test_before_the_first_check_nothing_is_wrong(world) -> None:
    assert (world.probe.seconds, world.probe.silent_seconds, world.probe.cut_off) == (
        None,
        0.0,
        False,
    )


def test_an_answer_counts_from_its_question(world) -> None:
    world.probe.probe()
    world.now += 3.0
    assert (world.probe.seconds, world.probe.silent_seconds) == (3.0, 3.0)
    assert world.waited == [TERMS.answer_seconds]


def test_no_answer_leaves_the_last_one(world) -> None:
    world.probe.probe()
    world.answers = False
    world.probe.probe()
    assert world.probe.seconds == TERMS.answer_seconds
    assert "MessagingTimeout" in world.probe.trouble
    assert not world.probe.cut_off
    world.now += TERMS.silent_seconds
    assert world.probe.cut_off
    world.answers = True
    world.probe.probe()
    assert not world.probe.cut_off


def test_one_that_never_had_an_answer_is_silent_since_its_first_question(world) -> None:
    world.answers = False
    world.probe.probe()
    world.now += TERMS.silent_seconds
    assert world.probe.seconds is None
    assert world.probe.cut_off


def test_who_does_not_hear_itself_takes_nobody_for_silent(world) -> None:
    """And not at once when it hears again: whoever was out of reach needs as long to be heard as ever."""
    assert not world.probe.receiving
    world.probe.probe()
    assert world.probe.receiving
    world.answers = False
    world.now += DEAF_SECONDS
    assert world.probe.receiving
    world.now += 0.1
    assert not world.probe.receiving
    world.answers = True
    world.probe.probe()
    assert not world.probe.receiving
    world.now += AGENT_DOWN_SECONDS / 2
    world.probe.probe()
    assert not world.probe.receiving
    world.now += AGENT_DOWN_SECONDS / 2
    world.probe.probe()
    assert world.probe.receiving


def test_a_short_silence_is_no_deafness(world) -> None:
    world.probe.probe()
    world.now += DEAF_SECONDS
    world.probe.probe()
    assert world.probe.receiving


def test_a_process_that_was_stopped_has_heard_nobody_meanwhile(world) -> None:
    world.probe.probe()
    world.now += 3600.0
    world.probe.probe()
    assert not world.probe.receiving


def test_at_rest_the_table_is_not_read_and_nothing_is_logged(world, levels) -> None:
    world.peers = AssertionError("the table was read")
    for _ in range(3):
        world.probe.probe()
        world.step_aside.run(7)
        world.step_aside.run(None)
    assert levels() == []


def test_a_leader_hands_over_once_for_each_epoch(world, caplog, levels) -> None:
    world.cut()
    world.peers = [FRESH]
    for epoch in (7, 7, 7, 9, 9):
        world.step_aside.run(epoch)
    assert world.handed_over == [(7, "b"), (9, "b")]
    assert levels() == [logging.WARNING]
    assert "has not reached the broker for 12 s; it hands over to b" in caplog.text


def test_where_nobody_reaches_the_broker_it_keeps_the_lead_and_says_so_once(world, caplog, levels) -> None:
    world.cut()
    world.peers = [STALE]
    for _ in range(5):
        world.step_aside.run(7)
    assert world.handed_over == []
    assert levels() == [logging.WARNING]
    assert "it keeps the lead, as no other controller is known to reach it (MessagingTimeout" in caplog.text
    world.answers = True
    world.probe.probe()
    for _ in range(5):
        world.step_aside.run(7)
    assert levels() == [logging.WARNING, logging.INFO]
    assert "reaches the broker again" in caplog.text


def test_it_hands_over_as_soon_as_somebody_reaches_the_broker(world) -> None:
    world.cut()
    world.peers = [STALE]
    world.step_aside.run(7)
    world.peers = [FRESH]
    world.step_aside.run(7)
    assert world.handed_over == [(7, "b")]


def test_one_that_stands_by_says_that_it_is_cut_off(world, caplog, levels) -> None:
    world.cut()
    world.peers = AssertionError("the table was read")
    for _ in range(3):
        world.step_aside.run(None)
    assert levels() == [logging.WARNING]
    assert "another controller goes first at the next election" in caplog.text


def test_a_table_that_cannot_be_read_is_read_again(world) -> None:
    world.cut()
    world.peers = Unavailable("the database is away")
    with pytest.raises(Unavailable):
        world.step_aside.run(7)
    world.peers = [FRESH]
    world.step_aside.run(7)
    assert world.handed_over == [(7, "b")]
