"""The election, step by step: who leads, and until when."""

from pondstack.domain.errors import Unavailable
from pondstack.ha.candidate import Role
from pondstack.ha.lease import Lease
from pondstack.tests.ha.machines import TERMS


def test_the_first_to_look_leads_and_the_other_stands_by(a, b) -> None:
    a.tick()
    b.tick()
    assert (a.candidate.role, b.candidate.role) == (Role.LEADER, Role.STANDBY)
    assert (a.elected, b.elected) == ([1], [])
    assert a.leads
    assert not b.leads


def test_a_leader_that_ticks_leads_for_ever(world, a, b) -> None:
    a.tick()
    for _ in range(200):
        world.pass_(0.5)
        a.tick()
        b.tick()
        assert a.leads
    assert a.elected == [1]
    assert b.elected == []


def test_it_renews_only_when_it_is_due(world, a) -> None:
    a.tick()
    ends = world.ends
    world.pass_(0.5)
    a.tick()
    assert world.ends == ends
    world.pass_(0.4)
    a.tick()
    assert world.ends > ends


def test_a_write_of_the_ledger_renews_too(world, a) -> None:
    a.tick()
    world.pass_(2.5)
    a.candidate.renewed(1, world.clocks["a"])
    world.pass_(2.5)
    assert a.leads


def test_a_write_of_another_epoch_or_an_older_one_renews_nothing(world, a) -> None:
    a.tick()
    begun = world.clocks["a"]
    world.pass_(2.0)
    a.candidate.renewed(7, world.clocks["a"])
    a.candidate.renewed(1, begun - 10)
    world.pass_(1.0)
    assert not a.leads


def test_a_dead_leader_is_followed_when_its_lease_is_over(world, a, b) -> None:
    a.tick()
    world.pass_(2.9)
    b.tick()
    assert b.elected == []
    world.pass_(0.2)
    b.tick()
    assert b.elected == [2]
    assert b.leads


def test_a_paused_leader_knows_by_itself_that_it_may_not_act(world, a, b) -> None:
    """Its clock went on while it slept: it refuses before it has asked anybody, and is told by its next renewal."""
    a.tick()
    world.pass_(10.0)
    b.tick()
    assert not a.leads
    assert a.candidate.role is Role.LEADER  # nobody has told it yet
    a.tick()
    assert a.candidate.role is Role.STANDBY
    assert len(a.deposed) == 1
    a.tick()
    assert a.elected == [1]


def test_the_leader_ends_before_the_row_does(world, a, b) -> None:
    """By the margin: never does it act while another one may be elected."""
    a.tick()
    world.pass_(TERMS.lease_seconds - TERMS.margin_seconds + 0.01)
    b.tick()
    assert not a.leads
    assert b.elected == []


def test_a_clock_that_stands_still_while_the_machine_sleeps_is_fenced_by_the_epoch(world, a, b) -> None:
    """The one case that check() cannot see (a frozen clock): the store refuses, whatever the candidate believes."""
    a.tick()
    world.pass_(10.0, but=("a",))
    b.tick()
    assert a.leads
    world.clocks["a"] += 1.0
    a.tick()
    assert not a.leads


def test_the_database_s_clock_jumps_ahead(world, a, b) -> None:
    """The lease seems over: another one takes it, and the former leader learns it at once."""
    a.tick()
    world.database_now += 3600
    b.tick()
    assert b.elected == [2]
    world.pass_(1.0)
    a.tick()
    assert not a.leads
    assert b.leads


def test_the_database_s_clock_jumps_back(world, a, b) -> None:
    """A leader that lives writes a new end at its next renewal."""
    a.tick()
    world.database_now -= 10
    b.tick()
    world.pass_(1.0)
    a.tick()
    assert world.ends == world.database_now + TERMS.lease_seconds
    assert b.elected == []


def test_machines_clocks_are_never_compared(world, a, b) -> None:
    world.clocks["b"] = -1e9
    a.tick()
    world.pass_(1.0)
    b.tick()
    assert b.elected == []


def test_a_slow_renewal_counts_from_its_start(world, a) -> None:
    a.tick()
    world.pass_(1.0)
    world.after["a.renew"] = lambda: world.pass_(2.0)
    a.tick()
    assert a.leads  # until 2.8 s after the start, of which 2.0 are gone
    world.pass_(0.9)
    assert not a.leads


def test_a_renewal_that_was_slower_than_the_lease_ends_it(world, a) -> None:
    a.tick()
    world.pass_(1.0)
    world.after["a.renew"] = lambda: world.pass_(4.0)
    a.tick()
    assert a.candidate.role is Role.STANDBY
    assert "too late" in a.deposed[0]


def test_a_slow_take_is_a_short_lease(world, a) -> None:
    world.after["a.take"] = lambda: world.pass_(2.9)
    a.tick()
    assert a.elected == [1]
    assert not a.leads
    a.tick()  # nobody has taken it meanwhile: it is renewed
    assert a.leads


def test_a_store_that_fails_for_a_while_costs_nothing(world, a) -> None:
    a.tick()
    world.pass_(1.0)
    world.fails["a.renew"] = Unavailable("away")
    a.tick()
    assert a.leads
    del world.fails["a.renew"]
    world.pass_(1.0)
    a.tick()
    world.pass_(1.5)
    assert a.leads


def test_a_partition_ends_the_lead_by_itself(world, a, b) -> None:
    """It steps down before anybody else can be elected, and stands again when the store is back and nobody leads."""
    a.tick()
    world.fails["a.renew"] = world.fails["a.look"] = Unavailable("away")
    world.pass_(2.81)
    b.tick()
    a.tick()
    assert a.candidate.role is Role.STANDBY
    assert b.elected == []
    world.pass_(0.2)
    b.tick()
    a.tick()
    assert b.elected == [2]
    world.fails.clear()
    world.pass_(0.5)
    a.tick()
    assert a.elected == [1]


def test_a_take_whose_outcome_is_unknown_elects_nobody(world, a, b) -> None:
    """It may have taken effect: then the lease runs out once, and the next one has a higher epoch."""
    real = world.row

    def lost() -> None:
        world.row, world.ends = Lease(real.epoch + 1, "a:1:x", 0.0), world.database_now + TERMS.lease_seconds

    world.before["a.take"] = lost
    world.fails["a.take"] = Unavailable("lost connection")
    a.tick()
    assert a.elected == []
    world.fails.clear()
    b.tick()
    assert b.elected == []
    world.pass_(3.1)
    b.tick()
    assert b.elected == [2]


def test_of_two_that_look_at_once_one_is_elected(world, a, b) -> None:
    world.before["a.take"] = b.tick
    a.tick()
    assert (a.elected, b.elected) == ([], [1])


def test_a_pause_between_look_and_take(world, a, b) -> None:
    """Whoever took the lease meanwhile has it: the take is conditional on the epoch that was looked at."""

    def meanwhile() -> None:
        b.tick()
        world.pass_(100.0)

    world.before["a.take"] = meanwhile
    a.tick()
    assert a.elected == []
    assert world.row.epoch == 1


def test_a_write_that_was_refused_deposes_once_and_its_own_epoch_only(a) -> None:
    a.tick()
    a.candidate.lost(7, "another epoch's")
    assert a.leads
    a.candidate.lost(1, "refused")
    a.candidate.lost(1, "refused")
    a.candidate.step_down("again")
    assert a.deposed == ["refused"]


def test_the_end_of_an_old_epoch_says_nothing_of_the_next(world, a) -> None:
    a.tick()
    a.candidate.step_down("test")
    world.pass_(5.0)
    a.tick()
    assert a.elected == [1, 2]
    a.candidate.renewed(1, world.clocks["a"] + 100)
    world.pass_(3.0)
    assert not a.leads
