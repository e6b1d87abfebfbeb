"""Tables in memory keep the contract of those in SQL: the ledger's very same tests, and the same life on both."""

import inspect
import types
from dataclasses import replace

import pytest

from pondstack.db import migration
from pondstack.db.engine import Database
from pondstack.db.ledger import Ledger
from pondstack.db.moves import MOVES, replay
from pondstack.db.retry import CompareAndSetLost
from pondstack.db.sql_reader import SqlReader
from pondstack.db.tables import SQL, Tables
from pondstack.domain.errors import Unavailable
from pondstack.domain.model import Slice
from pondstack.domain.states import SliceEvent
from pondstack.testing import lead, memory_controllers
from pondstack.testing.memory_lease import MemoryLease, take_over
from pondstack.testing.memory_ledger import MEMORY, MemoryLedger
from pondstack.testing.memory_reader import MemoryReader
from pondstack.testing.memory_store import MemoryStore
from pondstack.tests.db import (
    test_controllers,
    test_failures,
    test_journal,
    test_leadership,
    test_ledger,
    test_lending,
    test_reclaim,
)
from pondstack.tests.db.conftest import POOL, report

SQL_ONLY = {
    "test_the_clock_is_in_seconds_and_moves_within_a_transaction",
    "test_a_leader_asleep_within_a_transaction_keeps_nobody_waiting",
    "test_one_writer_has_few_transactions_at_a_time",
    "test_a_former_lender_shows_what_is_not_back_and_then_nothing",
}
"""Tests of the databases themselves, and of single buffers, which the reader in memory does not show."""


def _contract(module: types.ModuleType) -> dict[str, types.FunctionType]:
    """Return the tests of a module that know a ledger, a reader or a lease only."""
    known = {"ledger", "lent", "reader", "store", "database", "held"}
    return {
        name: function
        for name, function in vars(module).items()
        if name.startswith("test_")
        and inspect.isfunction(function)
        and name not in SQL_ONLY
        and set(inspect.signature(function).parameters) - known <= _parametrised(function)
    }


def _parametrised(function: types.FunctionType) -> set[str]:
    marks = getattr(function, "pytestmark", [])
    names: set[str] = set()
    for mark in marks:
        if mark.name == "parametrize":
            first = mark.args[0]
            names |= set(first.split(",") if isinstance(first, str) else first)
    return names


LEDGER = _contract(test_ledger) | _contract(test_failures) | _contract(test_leadership) | _contract(test_reclaim)
LEDGER |= _contract(test_lending)
globals().update(LEDGER)


@pytest.fixture
def database() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def ledger(database: MemoryStore) -> MemoryLedger:
    return _filled(MemoryLedger(database, take_over(database, "test")))


@pytest.fixture
def lent(ledger: MemoryLedger) -> MemoryLedger:
    test_lending.lend(ledger)
    return ledger


def _filled(made):
    made.register_pool(
        uuid=POOL, name="pool0", serial="S1", driver="fake", address={"path": "/x"}, slice_mib=1024, slices_total=4
    )
    for host in ("h1", "h2"):
        made.heartbeat(report(host))
    return made


@pytest.fixture
def held(ledger: MemoryLedger) -> str:
    uuid: str = ledger.assign("op-1", test_ledger.request())["allocation_uuid"]
    ledger.acknowledge("op-1", uuid, "h1")
    return uuid


@pytest.fixture
def reader(database: MemoryStore) -> MemoryReader:
    return MemoryReader(database, agent_down_seconds=20)


@pytest.fixture
def store(database: MemoryStore) -> MemoryLease:
    return MemoryLease(database)


@pytest.fixture(autouse=True)
def _without_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the store in the place of what these modules say in SQL."""
    for module in (test_ledger, test_failures, test_leadership, test_controllers, test_reclaim):
        for name, value in {"Ledger": MemoryLedger, "lead": take_over, "SqlLeadership": MemoryLease}.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(test_ledger, "_consumer", _consumer)
    monkeypatch.setattr(test_ledger, "_unclaimed_since", _unclaimed_since)
    monkeypatch.setattr(test_failures, "silence", _silence)
    monkeypatch.setattr(test_leadership, "ends", _ends)


def _consumer(tx, operation_id):
    return next(row.consumer_uuid for row in tx.tables.allocations.values() if row.operation_id == operation_id)


def _unclaimed_since(ledger, uuid):
    return ledger.database.read(lambda tx: tx.tables.allocations[uuid].unclaimed_since)


def _silence(ledger, host, seconds=60.0):
    def work(tx):
        row = tx.tables.hosts[host]
        tx.put(tx.tables.hosts, host, replace(row, last_heartbeat=row.last_heartbeat - seconds))

    ledger.database.write(work)


def _ends(database, after_seconds):
    def work(tx):
        row = tx.tables.leadership[1]
        tx.put(tx.tables.leadership, 1, replace(row, expires_at=tx.now() + after_seconds))

    database.write(work)


def test_most_of_the_contract_is_here() -> None:
    assert len(LEDGER) > 35, sorted(LEDGER)


@pytest.mark.parametrize("seed", range(5))
def test_the_same_life_gives_the_same_ledger(seed: int, tmp_path) -> None:
    """What a rack does, in an order that the seed chooses, on both; and the journals tell it alike."""
    sql = Database.from_url(f"sqlite:///{tmp_path}/ledger.db")
    migration.sync(sql)
    memory = MemoryStore()
    test_journal.some_life(_filled(Ledger(sql, lead(sql, "test"))), seed, 150)
    test_journal.some_life(_filled(MemoryLedger(memory, take_over(memory, "test"))), seed, 150)
    wanted = [_plain(aged.item) for aged in SqlReader(sql).rack().slices]
    found = [_plain(aged.item) for aged in MemoryReader(memory).rack().slices]
    sql.dispose()
    assert found == wanted
    slices = {}
    for row in sorted(memory.tables.operations.values(), key=lambda row: row.sequence):
        slices |= replay(slices, row.effect[MOVES], row.epoch)
    assert [_plain(slices[key]) for key in sorted(slices)] == wanted


def _plain(item):
    """Return a slice without the random ids."""
    return item.index, item.state, item.host, item.allocation_uuid is None, item.reason


def test_all_or_nothing() -> None:
    store = MemoryStore()
    ledger = _filled(MemoryLedger(store, take_over(store, "test")))
    before = MemoryReader(store).rack().ledger()

    def work(tx):
        for key in list(tx.tables.slices):
            tx.delete(tx.tables.slices, key)
        tx.put(tx.tables.pools, "new", tx.tables.pools[POOL])
        raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        ledger.database.write(work)
    assert MemoryReader(store).rack().ledger() == before


@pytest.mark.parametrize("tables", [SQL, MEMORY], ids=["sql", "memory"])
def test_a_slice_that_is_no_longer_as_it_was_read_is_not_moved(tables: Tables, tmp_path) -> None:
    sql = Database.from_url(f"sqlite:///{tmp_path}/ledger.db", retry_seconds=0.0)
    migration.sync(sql)
    stores = {SQL: (sql, lead), MEMORY: (MemoryStore(), take_over)}
    database, start = stores[tables]
    ledger = _filled(Ledger(database, start(database, "test"), tables=tables))
    ledger.assign("op-1", test_ledger.request(1))

    def work(tx):
        tables.slices.move(tx, [Slice(POOL, 0)], SliceEvent.ASSIGN, epoch=1, host="h2", allocation_uuid="a2")

    with pytest.raises((CompareAndSetLost, Unavailable)):
        database.write(work)
    sql.dispose()


def test_the_list_of_controllers() -> None:
    store = MemoryStore(clock=lambda: 100.0)
    for name in ("one", "two"):
        assert store.write(lambda tx, name=name: _say(tx, name)) == ""
    MemoryLease(store).take(0, "two:1", 20.0)
    assert {item.name: item.role for item in MemoryReader(store).controllers()} == {"one": "standby", "two": "leader"}
    store.write(lambda tx: memory_controllers.leave(tx, "one", "one:1"))
    assert MemoryReader(store).controllers()[0].role == "down"


def _say(tx, name):
    return memory_controllers.say(tx, name, f"{name}:1", role="standby", epoch=0, followed_sequence=0)
