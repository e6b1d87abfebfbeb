"""Keys in escrow, in the ledger, on all three databases and in memory."""

from uuid import uuid4

import pytest
from sqlalchemy import text

from pondstack.db.connection.engine import Database
from pondstack.db.store import SQL
from pondstack.db.store import escrow as sql
from pondstack.domain import errors
from pondstack.domain.escrow import EscrowedKey
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.requests import BorrowRequest
from pondstack.ledger.ledger import Ledger
from tests.fixtures import lead
from tests.fixtures.escrow import fill_escrow
from tests.fixtures.ledgers import report
from tests.fixtures.memory import escrow as memory
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore
from tests.fixtures.schema import migrate
from tests.fixtures.servers import NETWORK_DATABASES

BUFFER, LIFE = 64, "22222222-2222-4222-8222-222222222222"
ZOMBIE, ACTIVE = LenderKind.ZOMBIE, LenderKind.ACTIVE


@pytest.fixture(params=["sqlite", *NETWORK_DATABASES, "memory"])
def lending(request, tmp_path):
    """A ledger on each of the databases, and the one that simulations have."""
    if request.param == "memory":
        store = MemoryStore()
        yield MemoryLedger(store, take_over(store))
        return
    sqlite = request.param == "sqlite"
    url = migrate(tmp_path / "ledger.db") if sqlite else request.getfixturevalue(f"{request.param}_migrated_url")
    database = Database.from_url(url, retry_seconds=10)
    yield Ledger(database, lead(database, "test"), store=SQL)
    database.dispose()


@pytest.fixture
def slept(lending):
    """Host h1 is to sleep, with keys of its four buffers in escrow for h2 and h3, who are linked to it."""
    for host in ("h1", "h2", "h3"):
        say_links(lending, host)
    lend(lending, ZOMBIE)
    assert fill_escrow(lending, "h1", "h2", "h3") == 8
    return lending


def say_links(ledger, host, *links):
    sequence = say_links.sequence = getattr(say_links, "sequence", 1) + 1
    found = [["h1", LIFE]] if not links else list(links[0])
    ledger.hosts.heartbeat(report(host, sequence, pools=[], borrowed={"lenders": [], "links": found}))


def lend(ledger, kind, sequence=1, count=4):
    ledger.buffers.delegate(Lender("h1", LIFE, kind, BUFFER), sequence, {i: i * BUFFER for i in range(count)})


def borrow(ledger, host, count, *, guaranteed=True):
    wanted = BorrowRequest(str(uuid4()), host, count * BUFFER, guaranteed)
    effect = ledger.loans.borrow(str(uuid4()), wanted, BUFFER)
    return effect["allocation_uuid"], [item["index"] for item in effect["buffers"]]


def give_back(ledger, uuid, host):
    return ledger.loans.give_back(str(uuid4()), uuid, host)


def shown(ledger):
    return [(str(item.state), item.promised_to, item.escrowed) for item in ledger.buffers.find("h1")]


def borrowers(ledger):
    """Return for whom there are keys, by buffer."""
    found = {index: set() for index in range(4)}
    for key in ledger.escrow.of_lender(LIFE):
        found[key.index].add(key.borrower)
    return list(found.values())


def test_either_borrower_may_have_all_of_a_sleeping_lender(slept):
    assert borrow(slept, "h3", 4)[1] == [0, 1, 2, 3]
    with pytest.raises(errors.BufferShortage):
        borrow(slept, "h2", 1)


def test_a_key_that_was_disclosed_leaves_those_of_others_in_escrow(slept):
    _, indexes = borrow(slept, "h3", 2)
    assert shown(slept) == [("assigning", "h3", True)] * 2 + [("free", None, True)] * 2
    assert borrowers(slept) == [{"h2", "h3"}] * 4, "for where the consumer moves to"
    assert [key.index for key in slept.escrow.disclosed("h3", LIFE, range(4))] == indexes, "not what it has not got"
    assert slept.escrow.disclosed("h2", LIFE, range(4)) == []
    assert all(key.sealed for key in slept.escrow.disclosed("h3", LIFE, indexes))


def test_what_comes_back_is_for_the_same_borrower_only(slept):
    uuid, _ = borrow(slept, "h3", 2)
    assert give_back(slept, uuid, "h3") == [], "its lender has nothing to end: it sleeps"
    assert shown(slept)[:2] == [("free", "h3", True)] * 2
    assert borrow(slept, "h2", 4, guaranteed=False)[1] == [2, 3]
    again, indexes = borrow(slept, "h3", 2)
    assert indexes == [0, 1]
    assert len(slept.escrow.disclosed("h3", LIFE, indexes)) == 2
    assert give_back(slept, again, "h3") == []
    assert [item.generation for item in slept.buffers.find("h1")] == [3, 3, 2, 2]


def test_what_it_had_comes_first(slept):
    uuid, _ = borrow(slept, "h3", 1)
    slept.loans.give_back(str(uuid4()), uuid, "h3")
    assert borrow(slept, "h3", 1)[1] == [0]


def test_without_a_link_nothing_of_a_sleeping_lender_can_be_had(slept):
    for links in ([], [["h1", str(uuid4())]], [["h2", LIFE]]):
        say_links(slept, "h3", links)
        with pytest.raises(errors.BufferShortage):
            borrow(slept, "h3", 1)
    slept.hosts.heartbeat(report("h3", 900, pools=[], borrowed={"lenders": []}))  # a former agent
    with pytest.raises(errors.BufferShortage):
        borrow(slept, "h3", 1)
    assert slept.escrow.links() == {"h1": {("h1", LIFE)}, "h2": {("h1", LIFE)}}
    assert borrow(slept, "h2", 4)[1] == [0, 1, 2, 3]


def test_what_is_given_back_without_a_link_is_nobodys_until_the_lender_is_awake(slept):
    uuid, _ = borrow(slept, "h3", 2)
    say_links(slept, "h3", [])
    give_back(slept, uuid, "h3")
    assert shown(slept)[:2] == [("free", "h3", True)] * 2
    for host in ("h2", "h3"):
        assert borrow(slept, host, 4, guaranteed=False)[1] in ([2, 3], [])
    lend(slept, ACTIVE, 2)
    ended = {item.index: item.generation for item in slept.buffers.find("h1")}
    assert slept.escrow.end("h1", LIFE, ended) == 2
    assert slept.escrow.end("h1", LIFE, ended, used=True) == 2
    assert borrow(slept, "h3", 2)[1] == [0, 1]


def test_a_lender_that_is_awake_gives_nothing_before_all_keys_are_dead(slept):
    lend(slept, ACTIVE, 2)
    with pytest.raises(errors.BufferShortage):
        borrow(slept, "h2", 1)
    assert slept.buffers.reclaim("op-1", "h1", 4 * BUFFER) == []
    assert slept.escrow.end("h1", LIFE, {0: 1, 1: 0, 2: 1}) == 2, "1 is of another generation, nobody spoke of 3"
    assert shown(slept) == [("free", None, False), ("free", None, True)] * 2
    assert borrowers(slept) == [set(), {"h2", "h3"}] * 2
    assert slept.buffers.reclaim("op-1", "h1", 4 * BUFFER) == [0, 2]


def test_a_lender_that_was_awake_for_a_moment_makes_its_keys_anew(slept):
    """It may have ended those of before, and nobody has heard of it: none of them is told to anybody."""
    lend(slept, ACTIVE, 2)
    lend(slept, ZOMBIE, 3)
    assert shown(slept) == [("free", None, False)] * 4
    assert borrowers(slept) == [set()] * 4
    with pytest.raises(errors.BufferShortage):
        borrow(slept, "h2", 1)
    assert fill_escrow(slept, "h1", "h2", "h3") == 8
    lend(slept, ZOMBIE, 4)
    assert borrow(slept, "h2", 4)[1] == [0, 1, 2, 3]


def test_what_went_back_asleep_is_told_to_nobody_after_its_lender_was_awake_for_a_moment(slept):
    """Its borrower's key may have ended, and its bytes may be there: the buffer waits until its lender is awake."""
    uuid, _ = borrow(slept, "h3", 1)
    slept.loans.acknowledge("op-1", uuid, "h3")
    give_back(slept, uuid, "h3")
    lend(slept, ACTIVE, 2)
    lend(slept, ZOMBIE, 3)
    assert shown(slept)[0] == ("free", "h3", True)
    assert fill_escrow(slept, "h1", "h2", "h3") == 6
    with pytest.raises(errors.BufferShortage):
        borrow(slept, "h3", 4)
    assert borrow(slept, "h3", 3)[1] == [1, 2, 3]
    lend(slept, ACTIVE, 4)
    assert slept.escrow.end("h1", LIFE, {0: 2}) == 1
    assert shown(slept)[0] == ("free", None, False)


def test_the_owner_keeps_its_buffer_when_the_lender_wakes(slept):
    uuid, _ = borrow(slept, "h3", 1)
    slept.loans.acknowledge("op-1", uuid, "h3")
    lend(slept, ACTIVE, 2)
    assert slept.escrow.end("h1", LIFE, {0: 2}) == 0, "it is not free, and its owner's key lives"
    assert slept.escrow.end("h1", LIFE, {0: 2}, used=True) == 1
    assert shown(slept)[0] == ("online", None, False)
    assert give_back(slept, uuid, "h3") == ["h1"]
    assert shown(slept)[0] == ("sanitizing", None, False)


def test_what_went_back_before_its_lender_was_heard_keeps_its_key(slept):
    """Its lender has ended all keys but its owner's; the owner gave it back, and the lender was to sleep again."""
    uuid, _ = borrow(slept, "h3", 1)
    slept.loans.acknowledge("op-1", uuid, "h3")
    give_back(slept, uuid, "h3")
    assert shown(slept)[0] == ("free", "h3", True)
    assert slept.escrow.end("h1", LIFE, {0: 2}, used=True) == 0
    assert shown(slept)[0] == ("free", "h3", True)


def test_what_was_borrowed_awake_waits_for_its_lender(slept):
    """Its key is not in escrow: it could not be disclosed once more."""
    lend(slept, ACTIVE, 2)
    slept.escrow.end("h1", LIFE, dict.fromkeys(range(4), 1))
    uuid, _ = borrow(slept, "h3", 1)
    lend(slept, ZOMBIE, 3)
    assert give_back(slept, uuid, "h3") == ["h1"]
    assert shown(slept)[0] == ("sanitizing", None, False)


def test_dead_keys_leave_nothing_in_escrow(slept):
    uuid, _ = borrow(slept, "h3", 1)
    lend(slept, ACTIVE, 2)
    give_back(slept, uuid, "h3")
    assert slept.buffers.sanitized("h1", LIFE, [0]) == 1
    assert shown(slept)[0] == ("free", None, False)
    assert borrowers(slept)[0] == set()
    slept.failures.fence_host("h1", "burnt", force=True)
    assert slept.escrow.of_lender(LIFE) == []


def test_a_fenced_borrower_frees_nothing_while_the_lender_sleeps(slept):
    borrow(slept, "h3", 1)
    slept.failures.fence_host("h3", "burnt", force=True)
    assert shown(slept)[0] == ("quarantined", "h3", True)
    assert slept.buffers.free_revoked("h1", LIFE, [0]) == 1
    assert shown(slept)[0] == ("free", None, False)
    assert borrowers(slept)[0] == set()


def test_keys_that_come_late_are_left_out(slept):
    borrow(slept, "h3", 1)
    keys = [EscrowedKey(LIFE, 0, "h2", 1, "k", "s"), EscrowedKey(LIFE, 1, "h2", 7, "k", "s")]
    keys += [EscrowedKey(LIFE, 2, "h2", 1, "k", "s"), EscrowedKey(LIFE, 9, "h2", 1, "k", "s")]
    assert slept.escrow.deposit("h1", keys) == 1
    assert slept.escrow.sealed_otherwise("k")
    assert borrowers(slept)[0] == {"h2", "h3"}, "as they were"


def test_each_beginning_has_keys_of_its_own(slept):
    lend(slept, ZOMBIE, 2, count=6)
    assert slept.escrow.begin("h1", LIFE, range(6)) == 2, "the others have begun"
    assert [item.generation for item in slept.buffers.find("h1")] == [1] * 6


def test_keys_are_sealed_anew_unless_they_have_changed(slept):
    old = slept.escrow.sealed_otherwise("new")
    assert len(old) == 8
    borrow(slept, "h3", 1)
    new = [EscrowedKey(k.incarnation, k.index, k.borrower, k.generation, "new", "sealed anew") for k in old]
    assert slept.escrow.reseal(new) == 6, "those of one buffer are of another generation"
    assert {key.sealing_key for key in slept.escrow.sealed_otherwise("new")} == {"test"}


def test_a_host_that_is_removed_leaves_no_keys(slept):
    slept.removal._down = -1.0
    slept.removal.remove_host("h3", "op-1")
    assert borrowers(slept) == [{"h2"}] * 4


def test_keys_of_buffers_that_are_gone_are_found(slept):
    assert slept.escrow.remove_orphans() == 0
    lost = EscrowedKey(str(uuid4()), 0, "h2", 1, "k", "s")
    store = slept._store.escrow
    slept.database.write(lambda tx: store.put(tx, [lost]))
    assert slept.escrow.remove_orphans() == 1


def test_a_leader_of_the_former_release_gives_no_key_that_is_left(ledger):
    """It knows the columns of before only: it promises a buffer anew, under a generation of its own."""
    for host in ("h1", "h2"):
        say_links(ledger, host)
    lend(ledger, ZOMBIE)
    fill_escrow(ledger, "h1", "h2")
    promise = text("UPDATE buffers SET generation = generation + 1, promised_to = 'h2' WHERE buffer_index < 2")
    ledger.database.write(lambda session: session.execute(promise))
    assert borrow(ledger, "h2", 4, guaranteed=False)[1] == [2, 3]


def test_both_stores_have_the_same_functions():
    def functions(module):
        return {name for name, item in vars(module).items() if getattr(item, "__module__", "") == module.__name__}

    assert {n for n in functions(sql) if n[0] != "_"} == {n for n in functions(memory) if n[0] != "_"}


def test_a_key_that_the_former_release_promised_is_not_told_again(slept):
    """It counted a generation without the escrow: there is no key that another loan could be told."""
    uuid, _ = borrow(slept, "h3", 1)
    mine = slept.buffers.find("h1")[:1]
    slept.database.write(lambda tx: slept._store.buffers.mark(tx, mine, {"generation": 9}))
    assert give_back(slept, uuid, "h3") == ["h1"]
    assert shown(slept)[0][0] == "sanitizing"
