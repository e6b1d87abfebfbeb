"""kill -9 of the agent at each of its steps: no page is wrong, no buffer is kept or given twice, all comes back."""

import itertools

import pytest

from pondstack.domain.errors import PondError
from pondstack_rack.wait import wait_until

from ..lending.conftest import DEADLINE_SECONDS
from ..pagestore.conftest import content
from .conftest import CONSUMER, Killed

PAGES = range(0, 512, 7)


@pytest.fixture
def lent(rack):
    """Two hosts lend 2 MiB each; a third one is to borrow."""
    for name in ("host1", "host2"):
        rack.lend(name, 2)
    assert rack.borrower
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


@pytest.mark.parametrize("guaranteed", [True, False])
def test_while_it_borrows_and_gives_back(lent, guaranteed) -> None:
    """The caller repeats what it did not hear of. Ledger and agent agree in the end, and nothing is left over."""
    host = lent.borrower
    for step in itertools.count(1, 2):
        operation = f"alloc{step}"
        died = killed_at(host, step, lambda name=operation: host.alloc(2, guaranteed, operation=name))
        view = host.alloc(2, guaranteed, operation=operation)
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
    assert step > (10 if guaranteed else 20)  # there is no page store to make


def test_while_nobody_comes_back_for_it(lent) -> None:
    host = lent.borrower
    for step in itertools.count(1, 3):
        if not killed_at(host, step, lambda name=f"alloc{step}": host.alloc(2, guaranteed=True, operation=name)):
            break
        if any(view["state"] == "active" for view in host.remote.views()):
            host.release()  # it was done, and lacked the answer only: its consumer is known to who asked
        host.now += 4000
        lent.turn(4)
        assert (lent.free(), host.remote.views(), host.store.folder.exists()) == (True, [], False), step
    assert step > 10


def test_while_a_lender_takes_its_memory_back(lent) -> None:
    """Pages are written before and after, and read all the time: the page store does not notice."""
    host = lent.borrower
    host.alloc(2)
    model = {}
    with host.reader() as reader:
        for step in itertools.count(1, 3):
            for page in PAGES[step % 5 :: 5]:
                reader.write(page, content(page, step))
                model[page] = content(page, step)
            lender = min(held(lent))[0]
            lent.reclaim(lender, 2)
            died = killed_at(host, step, lambda: lent.turn(2))
            assert [page for page, data in model.items() if reader.read(page) != data] == [], step
            lent.turn(2)
            assert lent[lender].lending.get_lending()["buffers"] == [], step
            lent.lend(lender, 2)
            lent.turn(2)
            assert settled(lent) == held(lent), step
            assert host.view()["borrowed_mib"] == 2, step
            if not died:
                break
        assert wait_until(lambda: host.view()["store"]["pages"]["remote"] == len(model), DEADLINE_SECONDS)
        assert [page for page, data in model.items() if reader.read(page) != data] == []
    assert step > 10


def test_a_release_that_the_controller_does_not_hear(lent, monkeypatch) -> None:
    host = lent.borrower
    host.alloc(2)

    def away(**_):
        raise PondError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(lent.controller, "release_buffers", away)
        assert host.release()
        assert host.calls.get_remote(consumer_uuid=CONSUMER) is None or host.view()["state"] == "ending"
        assert not host.store.folder.exists()
    lent.turn(3)
    assert lent.free()
    assert host.remote.views() == []
