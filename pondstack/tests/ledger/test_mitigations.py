"""Mitigations in the ledger: each step once, journaled, and none that another overtook; splits that stay corrected."""

from dataclasses import replace
from uuid import uuid4

import pytest

from pondstack.db.store import splits
from pondstack.domain.errors import Conflict, IllegalTransition, NotFound
from pondstack.domain.mitigation import MitigationMethod, MitigationState, MitigationTrigger
from pondstack.domain.mitigation_step import Act, Step
from pondstack.domain.model import Allocation, Extent
from pondstack.domain.sizing import CORRECTED, PRESENT, Split
from pondstack.ledger.mitigations import Overtaken
from pondstack.ledger.store import RememberedSplit

S = MitigationState
VM = str(uuid4())
HELD = Allocation("a1", VM, "h1", "pool", (Extent(0, 2),), guest_mib=4096, project_id="blue")
HOW = {"trigger": MitigationTrigger.MONITOR, "method": None, "evidence": {"touched_mib": 512}}
DECIDED = Split(2048, 2048, "model", 0.9, "it said so", "v7", {"pdm": 5})


def begin(ledger, *, operation=None, forced=False):
    operation = operation or str(uuid4())
    return ledger.mitigations.get(ledger.mitigations.begin(operation, HELD, forced=forced, **HOW))


def to(state, **more):
    return Step(Act.WAIT, state, **more)


def finish(ledger, item):
    path = (S.MOVING, S.REWRITING, S.RELEASING, S.UNCLAIMING, S.DONE)
    for state in path:
        item = ledger.mitigations.advance(item, to(state, correct=True if state is S.REWRITING else None))
    return item


def test_from_its_begin_to_its_end(ledger, reader):
    item = begin(ledger)
    [shown] = reader.mitigations(consumer=VM, open_only=True)
    assert (shown.state, shown.method, shown.left_mib) == (S.CLAIMING, MitigationMethod.COPY, 2048)
    assert (shown.project_id, shown.trigger, shown.evidence) == ("blue", "monitor", {"touched_mib": 512})
    finish(ledger, item)
    assert not reader.mitigations(open_only=True)
    shown = reader.mitigation(item.uuid)
    assert (shown.state, shown.left_mib) == (S.DONE, 0)
    assert shown.ended_at >= shown.created_at
    assert reader.split(VM).corrected_at is not None
    with pytest.raises(Conflict, match="force it"):
        begin(ledger)
    assert begin(ledger, forced=True).forced
    assert [entry.uuid for entry in reader.mitigations(consumer=VM)][1] == item.uuid


def test_a_repetition_is_the_same_one(ledger):
    first = begin(ledger, operation="op1")
    assert ledger.mitigations.begun("op1") == first.uuid
    assert begin(ledger, operation="op1").uuid == first.uuid
    with pytest.raises(Conflict, match="wait for its end"):
        begin(ledger)
    assert ledger.mitigations.begun("op2") is None


def test_a_step_that_was_overtaken_changes_nothing(ledger):
    item = begin(ledger)
    ledger.mitigations.abort(str(uuid4()), VM)
    with pytest.raises(Overtaken):
        ledger.mitigations.advance(item, to(S.MOVING))
    assert ledger.mitigations.get(item.uuid).state is S.UNDOING
    with pytest.raises(IllegalTransition):
        ledger.mitigations.advance(item, to(S.DONE))


def test_an_abort_and_its_limits(ledger):
    with pytest.raises(NotFound):
        ledger.mitigations.abort(str(uuid4()), VM)
    item = ledger.mitigations.advance(begin(ledger), to(S.MOVING, correct=True))
    with pytest.raises(Conflict, match="only go on"):
        ledger.mitigations.abort(str(uuid4()), VM)
    item = ledger.mitigations.advance(item, to(S.UNDOING, correct=False, ending=S.FAILED))
    operation = str(uuid4())
    assert ledger.mitigations.abort(operation, VM) == ledger.mitigations.abort(operation, VM) == item.uuid
    assert ledger.mitigations.get(item.uuid).work.ending == S.ABORTED


def test_each_change_of_state_is_in_the_journal(ledger, database):
    item = finish(ledger, begin(ledger))
    steps = database.read(lambda tx: ledger._store.journal.of_kind(tx, "mitigation_step"))
    assert [effect["to"] for effect in steps][-1] == "done"
    assert {effect["uuid"] for effect in steps} == {item.uuid}


def test_a_mark_hides_what_was_decided_and_takes_nothing_away(ledger, database, reader):
    ledger.remember_splits([RememberedSplit(VM, "key", DECIDED)])
    item = finish(ledger, begin(ledger))
    known = database.read(lambda tx: splits.remembered(tx, [VM]))[0]
    assert (known.split.source, known.split.local_mib, known.split.pool_mib) == (CORRECTED, 4096, 0)
    shown = reader.split(VM)
    assert (shown.source, shown.pool_mib, shown.model_version) == ("model", 2048, "v7")
    local = Split(4096, 0, CORRECTED, 1.0, "as it is")
    ledger.remember_splits([RememberedSplit(VM, "other", local)])
    ledger.remember_splits([RememberedSplit(VM, "", replace(local, source=PRESENT))])
    assert reader.split(VM) == shown
    ledger.prune(0.0)
    assert reader.split(VM) == shown
    ledger.remember_splits([RememberedSplit(VM, "key", DECIDED)])
    assert reader.split(VM).corrected_at is None
    assert item.work.corrected


def test_what_is_undone_gets_its_split_back(ledger, reader):
    item = ledger.mitigations.advance(begin(ledger), to(S.MOVING, correct=True))
    assert reader.split(VM).corrected_at is not None
    item = ledger.mitigations.advance(item, to(S.UNDOING, ending=S.FAILED))
    ledger.mitigations.advance(item, to(S.FAILED, correct=False))
    assert reader.split(VM).corrected_at is None


def test_ended_ones_are_forgotten(ledger, reader):
    finish(ledger, begin(ledger))
    open_one = begin(ledger, forced=True)
    ledger.prune(3600.0)
    ledger.prune(3600.0, 3600.0)
    assert len(reader.mitigations()) == 2
    ledger.prune(3600.0, -1.0)
    assert [item.uuid for item in reader.mitigations()] == [open_one.uuid]


def test_pages_of_a_list(ledger, reader):
    for _ in range(3):
        finish(ledger, begin(ledger, forced=True))
    every = [item.uuid for item in reader.mitigations(host="h1", project_id="blue")]
    assert len(every) == 3
    assert [item.uuid for item in reader.mitigations(limit=1)] == every[:1]
    assert [item.uuid for item in reader.mitigations(marker=every[0])] == every[1:]
    assert reader.mitigations(project_id="green") == reader.mitigations(host="h2") == []
    with pytest.raises(NotFound):
        reader.mitigations(project_id="green", marker=every[0])
    with pytest.raises(NotFound):
        reader.mitigation("nobody")
