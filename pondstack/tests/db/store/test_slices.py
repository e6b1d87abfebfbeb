"""The compare-and-set of slices, by which a change that rests on an old look is none."""

from dataclasses import replace

import pytest

from pondstack.db.store import slices
from pondstack.domain.model import Slice
from pondstack.domain.states import SliceState
from pondstack.ledger.moves import Change
from pondstack.ledger.store import CompareAndSetLost
from pondstack.tests.ledger.test_ledger import request
from tests.fixtures.ledgers import POOL


@pytest.mark.parametrize(
    "seen", [{"state": SliceState.ONLINE}, {"owner": "another"}, {"owner": None}, {"indexes": [0, 3]}]
)
def test_what_is_not_as_it_was_seen_is_not_changed(ledger, reader, seen) -> None:
    """Its state, its owner, each of them: an allocation that has taken its place since keeps it."""
    owner = ledger.slices.assign("op-1", request(2))["allocation_uuid"]
    after = Slice(POOL, 0, SliceState.RELEASING, "h1", owner, ledger.epoch, "nobody claims it")
    as_it_is = Change(after=after, state=SliceState.ASSIGNING, owner=owner, indexes=[0, 1], assigned=False)
    before = reader.rack().ledger()

    def work(session):
        with pytest.raises(CompareAndSetLost):  # here: the database's retries would try it again
            slices.swap(session, replace(as_it_is, **seen))
        session.rollback()

    ledger.database.write(work)
    assert reader.rack().ledger() == before
    ledger.database.write(lambda session: slices.swap(session, as_it_is))
    assert [item.state for item in reader.slices(POOL)][:2] == [SliceState.RELEASING] * 2
