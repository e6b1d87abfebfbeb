"""What instances were placed with is kept, and forgotten, on every database."""

import pytest

from pondstack.db.store import splits
from pondstack.domain import errors
from pondstack.domain.sizing import Split
from pondstack.ledger.store import RememberedSplit

STATIC = Split(7168, 1024, "static", 1.0, "15 %")
LATE = Split(8192, 0, "timeout", 1.0, "all local: no answer within 0.5 s")
PRESENT = Split(7168, 1024, "present", 1.0, "it has it")
VM = "i-1"


def remember(ledger, split, age_seconds=0.0, flavor="f"):
    ledger.remember_splits([RememberedSplit(VM, flavor, split, age_seconds)])


def remembered(database, uuids=None):
    return database.read(lambda session: splits.remembered(session, uuids))


def test_it_is_remembered_with_its_flavor(database, ledger, reader):
    remember(ledger, STATIC, 30.0)
    [found] = remembered(database)
    assert (found.instance_uuid, found.flavor_key, found.split) == (VM, "f", STATIC)
    assert found.age_seconds == pytest.approx(30.0, abs=20.0)
    assert [item.split for item in remembered(database, [VM])] == [STATIC]
    assert remembered(database, ["i-2"]) == []
    assert reader.split(VM).reason == "15 %"
    with pytest.raises(errors.NotFound):
        reader.split("i-2")


def test_a_fallback_is_shown(ledger, reader):
    remember(ledger, LATE)
    assert (reader.split(VM).source, reader.split(VM).pool_mib) == ("timeout", 0)


def test_the_youngest_stays_whichever_comes_last(ledger, reader):
    remember(ledger, STATIC, 10.0)
    remember(ledger, LATE, 60.0)
    assert reader.split(VM).source == "static"
    remember(ledger, LATE, 5.0)
    assert reader.split(VM).source == "timeout"


@pytest.mark.parametrize(("flavor", "source"), [("f", "static"), ("g", "present")])
def test_what_it_has_takes_no_reason_away_of_the_same_split(ledger, reader, flavor, source):
    remember(ledger, STATIC, 60.0)
    remember(ledger, PRESENT, flavor=flavor)
    assert reader.split(VM).source == source


def test_the_memory_store_does_the_same():
    from tests.fixtures.memory import splits as memory
    from tests.fixtures.memory.store import Rows, Transaction

    tx = Transaction(Rows(), lambda: 1000.0)
    for split, age, expected in (
        (STATIC, 10.0, STATIC),
        (LATE, 60.0, STATIC),
        (PRESENT, 0.0, STATIC),
        (LATE, 5.0, LATE),
    ):
        memory.remember(tx, RememberedSplit(VM, "f", split, age))
        assert tx.tables.splits[VM].split == expected
