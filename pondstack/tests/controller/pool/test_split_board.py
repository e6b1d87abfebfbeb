"""What schedulers are told to decide from. The pool has 8 slices, one is its buffer."""

from dataclasses import replace
from uuid import uuid4

import pytest

from pondstack.controller.pool.split_board import LOST_SECONDS, SETTLED_SECONDS, SplitBoard
from pondstack.controller.pool.split_service import SplitService
from pondstack.db.store import project_settings, repredictions
from pondstack.domain import errors
from pondstack.domain.allowance import Allowance
from pondstack.domain.known_split import Present
from pondstack.domain.project_settings import DefaultPolicy, ProjectSettings
from pondstack.domain.room import PoolRoom
from pondstack.domain.sizing import Split
from pondstack.ledger.qos_records import Reprediction
from pondstack.ledger.store import RememberedSplit
from pondstack.prediction import table
from pondstack.prediction.balance import OFF, Balance, Point
from pondstack.prediction.serving import static_predictor
from pondstack.rpc.wire import SplitAnswer, SplitView
from pondstack.tests.controller.conftest import POOL, call
from pondstack.tests.controller.leader.test_endpoint import record

STATIC = SplitAnswer(7168, 1024, "static", 1.0, "15 %", 1024)


def view(rack, epoch=0, version=0, now=False, **known) -> SplitView:
    return SplitView.from_wire(call(rack.split_endpoint.split_view, epoch=epoch, version=version, now=now, **known))


def test_before_the_first_look_there_is_nothing_to_tell(rack):
    with pytest.raises(errors.Unavailable, match="call again"):
        view(rack)


def test_what_a_decision_needs(rack):
    rack.board.refresh()
    rack.now = 1.5
    told = view(rack)
    assert told.rooms == (PoolRoom("pool0", 8192, 7168),)
    assert (told.slice_mib, told.age_seconds) == (1024, 1.5)
    assert told.predictor == {"kind": "static", "percent": 15}


def test_what_is_set_for_projects(rack):
    rack.database.write(lambda tx: project_settings.change(tx, "p", {"default_policy": "auto", "max_pool_percent": 40}))
    rack.board.refresh()
    assert view(rack).projects == {"p": ProjectSettings(DefaultPolicy.AUTO, 40)}
    rack.database.write(lambda tx: project_settings.change(tx, "p", {"default_policy": None}))
    rack.splits.projects_changed()
    assert view(rack).projects == {"p": ProjectSettings(None, 40)}


def test_placement_is_asked_when_it_must_be_of_this_moment_only(rack):
    rack.board.refresh()
    rack.claims = {POOL: {"vm": 3072}}
    rack.now = 1.0
    assert view(rack).rooms[0].claimable_mib == 7168
    assert view(rack, now=True).rooms[0].claimable_mib == 4096


def test_what_was_told_and_is_not_claimed_is_pending(rack):
    rack.board.refresh()
    record(rack, STATIC)
    assert view(rack).pending == {"i1": 1024}
    rack.claims = {POOL: {"i1": 1024}}
    rack.board.refresh()
    told = view(rack)
    assert (told.pending, told.claimed) == ({}, ("i1",))
    assert told.rooms[0].claimable_mib == 6144
    rack.now = SETTLED_SECONDS + 1
    rack.board.refresh()
    assert view(rack).claimed == ()


def test_a_former_leaders_version_is_worth_nothing(rack):
    record(rack, STATIC)
    rack.board.refresh()
    told = view(rack)
    assert [item.instance_uuid for item in told.splits] == ["i1"]
    assert view(rack, told.epoch, told.version).splits == ()
    again = view(rack, told.epoch - 1, told.version)
    assert again.full
    assert again.splits == told.splits


def test_a_new_leader_knows_what_was_remembered(rack, database):
    record(rack, STATIC)
    rack.board.__init__(database, rack.ledger, rack.reader.rack, lambda _: {}, 20.0)
    rack.board.refresh()
    assert rack.board.catalog.get("i1").remembered.reason == "15 %"


def test_what_instances_have_is_told(rack):
    consumer = str(uuid4())
    rack.online(slices=3, consumer=consumer)
    rack.board.refresh()
    (known,) = view(rack).splits
    assert known.present == Present(8192, 3072)


def test_what_no_scheduler_told_is_remembered_from_placement(rack, monkeypatch):
    """The scheduler died before it could. A claim that is as young as that says nothing yet."""
    consumer = str(uuid4())
    rack.online(slices=3, consumer=consumer)
    rack.claims = {POOL: {consumer: 3072}}
    rack.board.refresh()
    with pytest.raises(errors.NotFound):
        rack.reader.split(consumer)
    monkeypatch.setattr("pondstack.controller.pool.split_board.LOST_SECONDS", -LOST_SECONDS)
    rack.board.refresh()
    found = rack.reader.split(consumer)
    assert (found.local_mib, found.pool_mib, found.source) == (5120, 3072, "present")


TABLE = table.join(
    {"version": "um-1", "projects": {"": {"16384/4": [0.5, 0, None]}}},
    None,
    {"0": Balance(OFF, Point(20.0, 1.0, {"known": 0.0, "cold": 0.1}))},
    percent=15,
    min_local_percent=10,
)


def test_a_table_is_sent_where_it_is_not_known(rack):
    rack.board.refresh()
    rack.predictor = TABLE
    first = view(rack, predictor="")
    assert (first.predictor, first.predictor_version) == (TABLE, TABLE["version"])
    again = view(rack, predictor=TABLE["version"])
    assert (again.predictor, again.predictor_version) == ({}, TABLE["version"])
    rack.predictor = table.join(None, None, {}, percent=20, min_local_percent=10)
    assert view(rack, predictor=TABLE["version"]).predictor == rack.predictor
    rack.predictor = static_predictor(15)
    changed = view(rack, predictor=TABLE["version"])
    assert (changed.predictor, changed.predictor_version) == (static_predictor(15), "")


def test_a_scheduler_of_the_former_release_gets_all_of_what_it_knows(rack):
    rack.board.refresh()
    rack.predictor = TABLE
    told = view(rack)
    assert (told.predictor["kind"], told.predictor["version"]) == ("um", "um-1")
    assert told.predictor["projects"][""]["16384/4"][0] == 6144  # 50 % less 10 % of it and of 4 GiB more
    rack.allowance = Allowance(0.0, {"um-1": 1.0})
    assert view(rack).predictor == {"kind": "static", "percent": 0}


def test_a_leader_that_has_asked_no_model_yet_leaves_what_a_scheduler_has(rack):
    rack.board.refresh()
    rack.predictor = None
    assert view(rack, predictor="known") == replace(view(rack, predictor="known"), predictor={})
    assert view(rack, predictor="known").predictor_version == "known"
    for unknown in ("", None):
        with pytest.raises(errors.Unavailable, match="no model yet"):
            view(rack, predictor=unknown)


def test_the_budget_travels_and_hears_what_was_placed(rack):
    rack.board.refresh()
    assert view(rack).model_budget is None
    rack.allowance = Allowance(3.0, {"um-1": 0.5})
    assert Allowance.from_wire(view(rack, predictor="").model_budget) == rack.allowance
    record(rack, SplitAnswer(7168, 1024, "untouched", 0.98, "model um-1", 1024))
    assert [item.instance_uuid for item in rack.noted] == ["i1"]


def test_which_model_decided_is_remembered_and_kept_on_a_move(rack):
    rack.board.refresh()
    inputs = {"pdm": 5, "history": 3, "share": 0.5, "margin": 0.1}
    used = {
        "features": {"instance_uuid": "i1", "memory_mib": 8192, "vcpus": 2, "specs": {"policy": "auto"}},
        "local_mib": 7168,
        "pool_mib": 1024,
        "source": "untouched",
        "confidence": 0.98,
        "reason": "model um-1",
        "model_version": "um-1",
        "inputs": inputs,
    }
    call(rack.split_endpoint.record_splits, splits=[used])
    kept = rack.reader.split("i1")
    assert (kept.model_version, kept.inputs) == ("um-1", inputs)
    [known] = view(rack).splits
    assert (known.remembered.model_version, known.remembered.inputs) == ("um-1", inputs)


def test_what_was_predicted_again_is_told_where_policy_says_so(rack, database):
    again = Reprediction("vm", "p", 8192, 1024, 3072, 5000.0, 90000, "measured")
    database.write(lambda session: repredictions.keep(session, [again]))
    split = Split(7168, 1024, "static", 1.0, "15 %")
    rack.ledger.remember_splits([RememberedSplit("vm", "key", split)])

    def told(take):
        board = SplitBoard(database, rack.ledger, rack.reader.rack, lambda _view: {}, 20.0, take_at_move=lambda: take)
        board.refresh()
        return {item.instance_uuid: item.renewed_mib for item in board.catalog.since(0).items}

    assert told(True) == {"vm": 3072}
    assert told(False) == {"vm": None}


def test_the_control_group_travels(rack):
    rack.board.refresh()
    assert rack.splits.view(0, 0, now=False).control == {}
    group = {"share_percent": 5.0, "seed": "seed"}
    grouped = SplitService(rack.ledger, rack.board, rack.splits._models, 3600, control=lambda: group)
    assert SplitView.from_wire(grouped.view(0, 0, now=False).to_wire()).control == group
