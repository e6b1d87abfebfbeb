"""Allocations that are being handed over: what the rules leave alone, and what they put in order after a crash."""

from dataclasses import replace

import pytest

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.rules.rules import decide
from pondstack.devices.base import Heir, Permission
from pondstack.domain.rack import AgedAllocation
from pondstack.domain.states import SliceState
from pondstack.tests.controller.builders import IDLE, OLD, POOL, Builder

NEXT = replace(IDLE, uuid="b1", host="h2")
HEIR = Heir("h2", "b1")


def handing(unclaimed=None):
    """A guest that moves from h1, by the claim of its migration, to h2, which has its slices attached, too."""
    built = Builder().allocate(replace(IDLE, heir="b1"))
    built.allocations["b1"] = AgedAllocation(NEXT, OLD, unclaimed)
    built.attach("h2", "b1", IDLE.extents, in_use=unclaimed is None)
    for index in (0, 1):
        built.permissions[index] = Permission("h1", "a1", 1, HEIR)
    built.claims = {"migration": ("h1", IDLE.pool_mib)}
    if unclaimed is None:
        built.claims["vm1"] = ("h2", IDLE.pool_mib)
    return built


def found(built):
    return {finding.code: finding for finding in decide(built.observation())}


def test_a_move_is_in_order():
    assert found(handing()) == {}


def test_a_move_without_the_ledgers_heir_is_two_owners():
    built = handing()
    built.allocations["a1"] = replace(built.allocations["a1"], item=IDLE)
    assert found(built)["conflicting_attachment"].action == actions.Offline("h2", "b1")


def test_the_device_follows_the_ledgers_switch():
    built = Builder().allocate(NEXT)
    for index in (0, 1):
        built.permissions[index] = Permission("h1", "a1", 1, HEIR)
    assert found(built)["permission_waits"].action == actions.Regrant("b1")


def test_an_heir_of_another_allocation_is_no_reason_to_grant():
    built = Builder().allocate(NEXT)
    built.permissions[0] = Permission("h1", "a1", 1, Heir("h3", "c1"))
    assert isinstance(found(built)["permission_differs"].action, actions.QuarantineAllocation)


def test_an_heir_that_the_ledger_does_not_know_is_let_out():
    built = Builder().allocate()
    built.permissions[1] = Permission("h1", "a1", 1, HEIR)
    assert found(built)["heir_left"].action == actions.EndPermissions(POOL, (1,), "b1")


def test_an_heir_that_nobody_claims_is_taken_offline():
    assert found(handing(unclaimed=OLD))["unclaimed"].action == actions.Offline("h2", "b1")


def test_an_heir_whose_guest_runs_is_kept():
    built = handing(unclaimed=OLD)
    built.attached["h2"][0]["in_use"] = True
    assert found(built)["unclaimed_in_use"].action is None


@pytest.mark.parametrize("state", [SliceState.RELEASING, SliceState.QUARANTINED])
def test_what_becomes_of_the_owner_is_no_matter_of_the_heir(state):
    built = handing()
    for index in (0, 1):
        built.put(index, state, host="h1", allocation="a1")
    subjects = {finding.subject for finding in decide(built.observation())}
    assert "allocation b1" not in subjects
