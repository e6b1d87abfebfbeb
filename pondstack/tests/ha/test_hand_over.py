"""Handing the lead over, step by step."""

from dataclasses import replace

import pytest

from pondstack.domain.errors import NotLeader, Unavailable
from pondstack.ha.candidate import Role
from pondstack.tests.ha.machines import TERMS, Machine


def test_a_hand_over_to_a_name(world, a, b) -> None:
    c = Machine(world, "c")
    a.tick()
    a.candidate.hand_over("b")
    assert a.deposed == ["handed over to b"]
    assert not a.leads
    for machine in (a, c):
        machine.tick()
    assert (a.elected, c.elected) == ([1], [])
    b.tick()
    assert b.elected == [2]


def test_a_successor_that_does_not_come_is_not_waited_for(world, a, b) -> None:
    a.tick()
    a.candidate.hand_over("gone")
    b.tick()
    assert b.elected == []
    world.pass_(TERMS.succession_seconds)
    b.tick()
    assert b.elected == [2]


def test_one_that_handed_over_rests_but_for_being_called(a, b) -> None:
    a.tick()
    a.candidate.hand_over("")
    a.tick()
    assert a.elected == [1]
    b.tick()
    b.candidate.hand_over("a")
    a.tick()
    assert a.elected == [1, 3]


def test_its_rest_ends_when_somebody_has_followed(a, b) -> None:
    """A restart of one controller after the other costs one look each, however soon."""
    a.tick()
    a.candidate.hand_over("")
    b.tick()
    b.candidate.hand_over("")
    a.tick()
    assert a.elected == [1, 3]


def test_alone_it_leads_again_after_its_rest(world, a) -> None:
    a.tick()
    a.candidate.hand_over("")
    world.pass_(TERMS.succession_seconds + 0.1)
    a.tick()
    assert a.elected == [1, 2]


def test_a_hand_over_whose_outcome_is_unknown(world, a, b) -> None:
    """It took effect: the next renewal is refused, and by then it rests."""
    a.tick()

    def took_effect() -> None:
        world.row, world.ends = replace(world.row, successor=""), 0.0

    world.before["a.hand_over"] = took_effect
    world.fails["a.hand_over"] = Unavailable("lost connection")
    with pytest.raises(Unavailable):
        a.candidate.hand_over("")
    world.pass_(1.0)
    a.tick()
    assert a.candidate.role is Role.STANDBY
    a.tick()
    assert a.elected == [1]
    b.tick()
    assert b.elected == [2]


def test_a_write_that_its_own_hand_over_refuses_says_so(world, a) -> None:
    """A round's write may find the lease over before hand_over() has come back; it is not to read as a lead lost."""
    a.tick()
    world.after["a.hand_over"] = lambda: a.candidate.lost(1, "epoch 1 has ended")
    a.candidate.hand_over("b")
    assert a.deposed == ["while it handed over to b: epoch 1 has ended"]


def test_only_a_leader_hands_over(a) -> None:
    with pytest.raises(NotLeader):
        a.candidate.hand_over("")
