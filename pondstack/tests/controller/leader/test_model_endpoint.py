"""Operators say which model serves: at the leader, once for each operation, never by a leader that was."""

from types import SimpleNamespace

import pytest

from pondstack.controller.gate import Gate
from pondstack.controller.leader.model_endpoint import ModelEndpoint
from pondstack.db.store import registry
from pondstack.domain.errors import Conflict, NotFound, NotLeader, OperationMismatch
from pondstack.tests.controller.conftest import call
from tests.fixtures import lead, sample_models

NEWER, OLDER = sample_models.CANDIDATE, sample_models.RUNNING


@pytest.fixture
def world(rack):
    rack.database.write(sample_models.store)
    woken = []
    endpoint = ModelEndpoint(ledger=rack.ledger, changed=lambda: woken.append(1), gate=Gate())
    return SimpleNamespace(endpoint=endpoint, woken=woken, database=rack.database)


def promote(world, version=NEWER, operation_id="one"):
    return call(world.endpoint.promote_model, version=version, operation_id=operation_id)


def rollback(world, version, operation_id="back"):
    return call(world.endpoint.rollback_model, version=version, operation_id=operation_id)


def running(world):
    return [item.version for item in world.database.read(registry.models) if item.state == "running"]


def test_a_repetition_gets_the_first_answer_and_undoes_nothing(world):
    promoted = {"running": NEWER, "former": OLDER}
    assert promote(world) == promoted
    back = {"running": OLDER, "former": NEWER}
    assert rollback(world, NEWER) == back
    assert world.woken == [1, 1]
    assert (promote(world), rollback(world, NEWER)) == (promoted, back)
    assert running(world) == [OLDER]


def test_what_cannot_be_is_refused_and_wakes_nobody(world):
    for refused, error in (
        (lambda: promote(world, "um-9"), NotFound),
        (lambda: promote(world, OLDER), Conflict),
        (lambda: rollback(world, NEWER), Conflict),
        (lambda: rollback(world, "um-9"), NotFound),
    ):
        with pytest.raises(error):
            refused()
    assert (running(world), world.woken) == ([OLDER], [])
    promote(world)
    with pytest.raises(OperationMismatch):
        promote(world, OLDER)


def test_a_leader_that_was_changes_nothing(world):
    lead(world.database, "another")
    with pytest.raises(NotLeader):
        promote(world)
    assert (running(world), world.woken) == ([OLDER], [])


def test_it_is_behind_the_gate(world):
    world.endpoint.gate.shut("handed over")
    for refused in (promote, lambda world: rollback(world, OLDER)):
        with pytest.raises(NotLeader):
            refused(world)
