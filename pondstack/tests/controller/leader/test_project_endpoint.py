"""Operators set things for projects: at the leader, once for each operation, and the schedulers hear of it."""

from types import SimpleNamespace

import pytest

from pondstack.controller.gate import Gate
from pondstack.controller.leader.project_endpoint import ProjectEndpoint
from pondstack.db.store import project_settings
from pondstack.domain.errors import BadRequest, NotLeader, OperationMismatch
from pondstack.domain.project_settings import DefaultPolicy, ProjectSettings
from pondstack.tests.controller.conftest import call
from tests.fixtures import lead


@pytest.fixture
def world(rack):
    endpoint = ProjectEndpoint(ledger=rack.ledger, changed=rack.board.read_projects, gate=Gate())
    return SimpleNamespace(endpoint=endpoint, board=rack.board, database=rack.database)


def set_(world, operation_id="one", project="p", **changes):
    return call(world.endpoint.set_project, project_id=project, changes=changes, operation_id=operation_id)


def test_it_is_on_the_board_at_once(world):
    assert set_(world, default_policy="auto") == {"default_policy": "auto", "max_pool_percent": None}
    assert set_(world, "two", max_pool_percent=0) == {"default_policy": "auto", "max_pool_percent": 0}
    assert world.board.projects == {"p": ProjectSettings(DefaultPolicy.AUTO, 0)}
    set_(world, "three", default_policy=None, max_pool_percent=None)
    assert world.board.projects == {}


def test_a_repetition_undoes_nothing(world):
    first = set_(world, max_pool_percent=10)
    set_(world, "two", max_pool_percent=20)
    assert set_(world, max_pool_percent=10) == first
    assert world.board.projects["p"].max_pool_percent == 20
    with pytest.raises(OperationMismatch):
        set_(world, max_pool_percent=30)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"colour": "blue"},
        {"default_policy": "fixed"},
        {"max_pool_percent": -1},
        {"max_pool_percent": 101},
        {"max_pool_percent": True},
        {"max_pool_percent": "40"},
    ],
)
def test_what_is_wrong_changes_nothing(world, changes):
    set_(world, "before", default_policy="none")
    with pytest.raises(BadRequest):
        set_(world, **changes)
    assert world.database.read(project_settings.all_set) == {"p": ProjectSettings(DefaultPolicy.NONE)}


def test_a_leader_that_was_changes_nothing(world):
    lead(world.database, "another")
    with pytest.raises(NotLeader):
        set_(world, max_pool_percent=0)
    assert world.database.read(project_settings.all_set) == {}


def test_it_is_behind_the_gate(world):
    world.endpoint.gate.shut("handed over")
    with pytest.raises(NotLeader):
        set_(world, max_pool_percent=0)
