"""The election, step by step: clocks, the store and its failures are played here, so that each moment can be chosen."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pondstack.domain.errors import NotLeader, Unavailable
from pondstack.ha.candidate import Candidate, Role
from pondstack.ha.lease import Lease, Terms

TERMS = Terms(lease_seconds=3.0, renew_seconds=0.8, margin_seconds=0.2, succession_seconds=5.0)


class World:
    """The row, the database's clock and a clock for each machine; `drift` moves a machine's clock apart."""

    def __init__(self) -> None:
        self.database_now = 1000.0
        self.row = Lease(0, "", 0.0)
        self.ends = 0.0
        self.clocks: dict[str, float] = {}
        self.fails: dict[str, Exception] = {}
        self.before: dict[str, Callable[[], None]] = {}
        self.after: dict[str, Callable[[], None]] = {}

    def pass_(self, seconds: float, but: tuple[str, ...] = ()) -> None:
        """Let time pass for the database and for all machines but those whose clocks stand still."""
        self.database_now += seconds
        for name in self.clocks:
            if name not in but:
                self.clocks[name] += seconds


class Store:
    """LeaseStore of one machine: what it does may be slow or fail, before or after it took effect."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name

    def _around(self, what: str) -> None:
        world = self._world
        hook = world.before.pop(f"{self._name}.{what}", None)
        if hook:
            hook()
        error = world.fails.get(f"{self._name}.{what}")
        if error:
            raise error

    def _done(self, what: str) -> None:
        hook = self._world.after.pop(f"{self._name}.{what}", None)
        if hook:
            hook()

    def look(self) -> Lease:
        self._around("look")
        return replace(self._world.row, remaining_seconds=self._world.ends - self._world.database_now)

    def take(self, expected: int, holder: str, lease_seconds: float) -> bool:
        self._around("take")
        world = self._world
        if world.row.epoch == expected and world.ends <= world.database_now:
            world.row = Lease(expected + 1, holder, 0.0)
            world.ends = world.database_now + lease_seconds
        self._done("take")
        return world.row.epoch == expected + 1 and world.row.holder == holder

    def renew(self, epoch: int, lease_seconds: float) -> None:
        self._around("renew")
        if self._world.row.epoch != epoch or not self._world.ends:
            raise NotLeader("ended")
        self._world.ends = self._world.database_now + lease_seconds
        self._done("renew")

    def hand_over(self, epoch: int, successor: str) -> None:
        self._around("hand_over")
        if self._world.row.epoch != epoch:
            raise NotLeader("ended")
        self._world.row = replace(self._world.row, successor=successor)
        self._world.ends = 0.0
        self._done("hand_over")


class Machine:
    """A candidate on a machine of its own, and what it was told."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        world.clocks[name] = 50.0 * (len(world.clocks) + 1)
        self.elected: list[int] = []
        self.deposed: list[str] = []
        self.gives_way = False
        self.candidate = Candidate(
            Store(world, name),
            name=name,
            holder=f"{name}:1:x",
            terms=TERMS,
            clock=lambda: world.clocks[name],
            elected=self.elected.append,
            deposed=self.deposed.append,
            gives_way=lambda: self.gives_way,
        )

    def tick(self) -> None:
        self.candidate.tick()

    @property
    def leads(self) -> bool:
        try:
            self.candidate.check()
        except NotLeader:
            return False
        return True


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def a(world: World) -> Machine:
    return Machine(world, "a")


@pytest.fixture
def b(world: World) -> Machine:
    return Machine(world, "b")


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


def test_only_a_leader_hands_over(a) -> None:
    with pytest.raises(NotLeader):
        a.candidate.hand_over("")


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


def test_one_that_gives_way_stands_after_all_others(world, a, b) -> None:
    a.gives_way = True
    a.tick()
    assert a.elected == []
    world.pass_(TERMS.succession_seconds - 0.1)
    a.tick()
    b.tick()
    assert (a.elected, b.elected) == ([], [1])


def test_where_all_give_way_somebody_leads_all_the_same(world, a, b) -> None:
    a.gives_way = b.gives_way = True
    a.tick()
    world.pass_(TERMS.succession_seconds)
    b.tick()  # has only just begun to look
    a.tick()
    assert (a.elected, b.elected) == ([1], [])


def test_one_that_needs_no_longer_give_way_stands_at_once(a) -> None:
    a.gives_way = True
    a.tick()
    a.gives_way = False
    a.tick()
    assert a.elected == [1]


def test_one_that_gives_way_comes_after_a_successor_and_all_others(world, a, b) -> None:
    """The successor does not come: first everybody who need not give way may stand, then everybody."""
    a.tick()
    a.candidate.hand_over("gone")
    b.gives_way = True
    b.tick()
    world.pass_(TERMS.succession_seconds + 0.1)
    b.tick()
    assert b.elected == []
    world.pass_(TERMS.succession_seconds)
    b.tick()
    assert b.elected == [2]


def test_cut_off_and_alone_after_its_own_hand_over_it_leads_again(world, a) -> None:
    """Its rest, the successor's time and everybody else's: it waits for each of them, and for nothing more."""
    a.tick()
    a.candidate.hand_over("gone")
    a.gives_way = True
    for _ in range(3):
        assert a.elected == [1]
        world.pass_(TERMS.succession_seconds)
        a.tick()
    world.pass_(0.1)
    a.tick()
    assert a.elected == [1, 2]


def test_one_that_gives_way_and_is_called_stands(a, b) -> None:
    a.tick()
    b.gives_way = True
    a.candidate.hand_over("b")
    b.tick()
    assert b.elected == [2]


def test_a_leader_that_gives_way_keeps_its_lease(world, a, b) -> None:
    """Whether it leads on is not the election's business: it hands over, or it does not."""
    a.tick()
    a.gives_way = True
    for _ in range(20):
        world.pass_(0.5)
        a.tick()
        b.tick()
    assert a.leads
    assert b.elected == []
