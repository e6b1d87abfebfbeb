"""kill -9 of the agent at each of its steps: no buffer is kept or given twice, all comes back."""

import itertools

import pytest

from pondstack.domain.errors import PondError

from .conftest import CONSUMER, Killed


@pytest.fixture
def lent(rack):
    """Two hosts lend 2 MiB each; a third one is to borrow."""
    for name in ("host1", "host2"):
        rack.lend(name, 2)
    assert rack.borrower
    for host in rack.hosts.values():  # to begin a host may take longer than it may be silent
        host.beat()
    return rack


def killed_at(host, step, work):
    """Do something with an agent that dies at a step of it, then start the agent anew; False when it has fewer."""
    host.fuse.left = step
    try:
        work()
    except Killed:
        host.restart()
        return True
    finally:
        host.fuse.left = 0
    return False


def settled(rack):
    rack.turn(3)
    online = [item for item in rack.controller.ledger.buffers.find() if item.allocation_uuid]
    assert {item.state for item in online} <= {"online"}, online
    return {(item.lender, item.incarnation, item.index) for item in online}


def held(rack):
    lenders = rack.borrower.borrower.report()["lenders"]
    return {
        (each["lender"], each["incarnation"], index)
        for each in lenders
        for indexes in [*each["allocations"].values(), *each["leaving"].values()]
        for index in indexes
    }


def test_while_it_borrows_and_gives_back(lent) -> None:
    """The caller repeats what it did not hear of. Ledger and agent agree in the end, and nothing is left over."""
    host = lent.borrower
    for step in itertools.count(1, 2):
        operation = f"alloc{step}"
        died = killed_at(host, step, lambda name=operation: host.alloc(2, operation=name))
        view = host.alloc(2, operation=operation)
        assert (view["state"], view["borrowed_mib"]) == ("active", 2), step
        assert settled(lent) == held(lent), step
        assert len(held(lent)) == 2, step
        died = killed_at(host, step, host.release) or died
        host.release()
        lent.turn(3)
        assert lent.free(), (step, lent.controller.ledger.buffers.find())
        assert host.remote.views() == [], step
        if not died:
            break
    assert step > 10


def test_while_nobody_comes_back_for_it(lent) -> None:
    host = lent.borrower
    for step in itertools.count(1, 3):
        if not killed_at(host, step, lambda name=f"alloc{step}": host.alloc(2, operation=name)):
            break
        if any(view["state"] == "active" for view in host.remote.views()):
            host.release()  # it was done, and lacked the answer only: its consumer is known to who asked
        host.now += 4000
        lent.turn(4)
        assert (lent.free(), host.remote.views()) == (True, []), step
    assert step > 10


def test_while_a_lender_takes_its_memory_back(lent) -> None:
    """Of a swap disk, whose pages test_served_disk.py looks at."""
    host = lent.borrower
    host.attach_swap(2)
    for step in itertools.count(1, 3):
        lender = min(held(lent))[0]
        lent.reclaim(lender, 2)
        died = killed_at(host, step, lambda: lent.turn(2))
        lent.turn_until(lambda name=lender: lent.done(name))
        assert lent[lender].lending.get_lending()["buffers"] == [], step
        lent.lend(lender, 2)
        lent.turn(2)
        assert settled(lent) == held(lent), step
        view = host.swap()
        assert (view["borrowed_mib"], view["disk"]["leases"]) == (2, {"active": 2}), step
        if not died:
            break
    assert step > 10


def test_a_release_that_the_controller_does_not_hear(lent, monkeypatch) -> None:
    host = lent.borrower
    host.attach_swap(2)

    def away(**_):
        raise PondError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(lent.controller, "release_buffers", away)
        assert host.release_swap()
        assert host.calls.get_swap(consumer_uuid=CONSUMER) is None or host.swap()["state"] == "ending"
        assert host.data_plane.blocks.served == {}
    lent.turn(3)
    assert lent.free()
    assert host.remote.views() == []
