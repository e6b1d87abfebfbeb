"""A stand-by's view: replayed from the journal it tells what the tables tell."""

from dataclasses import replace

import pytest

from pondstack.db.read.replica import differences, follow, load
from pondstack.db.store import journal
from pondstack.domain.causes import Cause
from pondstack.domain.requests import AssignRequest
from pondstack.ledger.moves import OutOfStep
from pondstack.tests.db.store.test_journal import some_life
from tests.fixtures.ledgers import POOL, report


def plain(view):
    """Return a view without its ages."""
    return view.ledger(), set(view.hosts), {uuid: aged.unclaimed_seconds for uuid, aged in view.allocations.items()}


def test_following_tells_what_reading_tells(ledger):
    database = ledger.database
    followed = database.read(load)
    for seed in range(4):
        some_life(ledger, seed, steps=15)
        before = followed
        followed = database.read(lambda session, before=before: follow(session, before))
        read = database.read(load)
        assert plain(followed.view) == plain(read.view)
        assert differences(followed.view, read.view) == []
        assert (followed.sequence, followed.epoch) == (read.sequence, ledger.epoch)


def test_ages_go_on(ledger):
    database = ledger.database
    uuid = ledger.slices.assign("op-1", AssignRequest("c1", "h1", POOL, 1024, 4096))["allocation_uuid"]
    first = database.read(load)
    later = database.read(lambda session: follow(session, first))
    assert later.moment >= first.moment
    passed = later.moment - first.moment
    assert later.view.allocations[uuid].age_seconds == pytest.approx(first.view.allocations[uuid].age_seconds + passed)


def test_a_pruned_stretch_is_noticed(ledger):
    database = ledger.database
    last = database.read(load)
    some_life(ledger, 1, steps=20)
    assert ledger.prune(-1) > 0
    with pytest.raises(OutOfStep, match="pruned"):
        database.read(lambda session: follow(session, last))


def test_hosts_are_read_afresh(ledger):
    database = ledger.database
    last = database.read(load)
    ledger.hosts.heartbeat(report("h3"))
    ledger.hosts.set("h1", False, "fan", None)
    view = database.read(lambda session: follow(session, last)).view
    assert set(view.hosts) == {"h1", "h2", "h3"}
    assert not view.hosts["h1"].enabled


def test_a_wrong_view_is_told(ledger):
    one = ledger.database.read(load).view
    ledger.slices.quarantine(POOL, [2], Cause.PERMISSION_LEFT, "test")
    other = ledger.database.read(load).view
    assert differences(one, other) == [(POOL, 2)]


def test_the_newest_operation_is_never_pruned_away_from_a_follower(ledger):
    last = ledger.database.read(load)
    ledger.prune(-1)
    assert ledger.database.read(journal.newest) == last.sequence
    assert ledger.database.read(lambda session: follow(session, last)).sequence == last.sequence


def test_heirs_are_followed(ledger):
    """Whatever becomes of a hand-over: the allocation that is to get the slices is there, though it has none yet."""
    database = ledger.database
    here = AssignRequest("c1", "h1", POOL, 1024, 4096)
    owner = ledger.slices.assign("op-1", here)["allocation_uuid"]
    ledger.slices.acknowledge("op-1", owner, "h1")
    uuids = []

    def hand_over(operation_id):
        uuids.append(
            ledger.slices.assign(operation_id, replace(here, host="h2", source="h1"), hands_over=True)[
                "allocation_uuid"
            ]
        )

    steps = (
        lambda: hand_over("op-2"),
        lambda: ledger.slices.release("op-3", uuids[0], "h2"),
        lambda: hand_over("op-4"),
        lambda: ledger.failures.fence_host("h2", "it burns", force=True),
        lambda: ledger.failures.unfence_host("h2"),
        lambda: hand_over("op-5"),
        lambda: ledger.slices.release("op-6", owner, "h1"),
    )
    followed = database.read(load)
    ledger.hosts.heartbeat(report("h2", sequence=2))
    for step in steps:
        step()
        ledger.hosts.heartbeat(report("h2", sequence=3 + steps.index(step)))
        followed = database.read(lambda session, before=followed: follow(session, before))
        assert plain(followed.view) == plain(database.read(load).view)
    assert list(followed.view.allocations) == [uuids[2]]
