"""The journal tells all: replaying it from the start gives the slices' states, whatever happened."""

import random
from uuid import uuid4

import pytest
from sqlalchemy import select

from pondstack.db.models import OperationRow
from pondstack.db.store import journal
from pondstack.domain.causes import Cause
from pondstack.domain.errors import Conflict, HostUnusable, NotFound, PoolShortage
from pondstack.domain.model import Slice
from pondstack.domain.requests import AssignRequest
from pondstack.domain.states import SliceState
from pondstack.ledger.moves import MOVES, OutOfStep, replay
from tests.fixtures.ledgers import POOL, report


def replayed(database):
    """Return the slices that the journal alone gives."""
    rows = database.read(lambda session: journal.after(session, 0, limit=100_000))
    slices: dict[tuple[str, int], Slice] = {}
    for row in rows:
        slices |= replay(slices, row.effect[MOVES], row.epoch)
    return slices


def present(reader):
    return {(aged.item.pool_uuid, aged.item.index): aged.item for aged in reader.rack().slices}


def some_life(ledger, seed: int, steps: int) -> None:
    """Do what a rack does, in an order that the seed chooses."""
    choose = random.Random(seed)
    uuids = ["none"]

    def assign() -> None:
        request = AssignRequest(str(uuid4()), choose.choice(["h1", "h2"]), POOL, choose.choice([1, 2]) * 1024, 4096)
        uuids.append(ledger.slices.assign(str(uuid4()), request)["allocation_uuid"])

    def any_indexes() -> list[int]:
        return choose.sample(range(4), choose.randint(1, 4))

    def change_of_mind() -> None:
        ledger.slices.begin_release(uuids[-1], "nobody claims it")
        ledger.slices.reinstate(uuids[-1])

    actions = [
        assign,
        assign,
        lambda: ledger.slices.acknowledge(str(uuid4()), choose.choice(uuids), "h1"),
        lambda: ledger.slices.release(str(uuid4()), uuids[-1], "h1"),
        lambda: ledger.slices.release(str(uuid4()), uuids[-1], "h2"),
        lambda: ledger.slices.begin_release(choose.choice(uuids), "nobody claims it"),
        lambda: ledger.slices.quarantine_allocation(
            choose.choice(uuids), choose.choice([Cause.AGENT_DOWN, Cause.AGENT_LOST]), "x"
        ),
        lambda: ledger.slices.reinstate(choose.choice(uuids)),
        change_of_mind,
        lambda: ledger.slices.quarantine(POOL, any_indexes(), Cause.UNKNOWN_ATTACHMENT, "x", host="h2"),
        lambda: ledger.slices.audit(POOL, any_indexes(), "proved free"),
        lambda: ledger.failures.fail_allocation(choose.choice(uuids), choose.randint(1, 2), "pool0", notify=True),
        lambda: ledger.failures.fence_host(choose.choice(["h1", "h2"]), "for the test", force=True),
        lambda: ledger.hosts.heartbeat(report("h1")) and ledger.failures.unfence_host("h1"),
        lambda: ledger.slices.sanitized(POOL, any_indexes()),
        lambda: ledger.slices.sanitized(POOL, range(4)),
    ]
    for _ in range(steps):
        try:
            choose.choice(actions)()
        except (PoolShortage, NotFound, Conflict, HostUnusable):
            continue


@pytest.mark.parametrize("seed", range(3))
def test_replaying_gives_the_states(ledger, reader, seed):
    some_life(ledger, seed, steps=80)
    assert replayed(ledger.database) == present(reader)
    assert {item.state for item in present(reader).values()} <= set(SliceState)


@pytest.mark.parametrize("aside", [False, True], ids=["releasing", "quarantined"])
def test_what_was_taken_back_is_in_the_journal(ledger, reader, aside):
    uuid = ledger.slices.assign("op-1", AssignRequest("c1", "h1", POOL, 2048, 4096))["allocation_uuid"]
    ledger.slices.begin_release(uuid, "nobody claims it")
    if aside:
        ledger.slices.quarantine_allocation(uuid, Cause.AGENT_DOWN, "h1 is silent")
    ledger.slices.reinstate(uuid)
    assert replayed(ledger.database) == present(reader)
    assert [item.state for item in present(reader).values()][:2] == [SliceState.ONLINE] * 2


def test_a_device_that_grew_is_in_the_journal(ledger, reader):
    ledger.pools.register(
        uuid=POOL, name="pool0", serial="S1", driver="fake", address={}, slice_mib=1024, slices_total=6
    )
    assert len(replayed(ledger.database)) == 6
    assert replayed(ledger.database) == present(reader)


def test_registering_again_writes_nothing(ledger):
    before = ledger.database.read(journal.newest)
    ledger.pools.register(
        uuid=POOL, name="renamed", serial="S1", driver="fake", address={}, slice_mib=1024, slices_total=4
    )
    assert ledger.database.read(journal.newest) == before


def test_every_kind_of_effect_has_its_moves(ledger):
    some_life(ledger, seed=7, steps=60)
    ledger.hosts.set("h1", True, "", None)
    ledger.slices.reinstate("none")
    rows = ledger.database.read(lambda session: session.execute(select(OperationRow)).scalars().all())
    assert {row.kind for row in rows} >= {
        "register_pool",
        "assign",
        "release",
        "quarantine",
        "sanitized",
        "set_host",
        "reinstate",
    }
    assert all(isinstance(row.effect[MOVES], list) for row in rows)


def test_a_missing_operation_is_noticed():
    free = Slice(POOL, 0)
    move = {"pool": POOL, "indexes": [0], "from": "online", "to": "releasing", "host": "h1"}
    move |= {"allocation": "a", "reason": ""}
    with pytest.raises(OutOfStep, match="is free and cannot go from online"):
        replay({(POOL, 0): free}, [move], epoch=1)


def test_set_host_by_operation_id_happens_once(ledger):
    first = ledger.hosts.set("h1", False, "fan", 0, operation_id="op-1")
    assert ledger.hosts.set("h1", False, "fan", 0, operation_id="op-1") == first == 1
