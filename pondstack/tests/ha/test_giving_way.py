"""Elections with candidates that do not reach the broker."""

from pondstack.tests.ha.machines import TERMS


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
