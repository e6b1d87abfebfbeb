"""Splits while others are between split, claim and slices. The pool has 8 slices, one is its buffer."""

import pytest

from pondstack.controller.pool.returns import PoolClaims
from pondstack.domain import errors
from pondstack.domain.rack import RackView
from pondstack.domain.room import PENDING_SECONDS
from pondstack.tests.controller.conftest import POOL
from pondstack.tests.controller.leader.test_endpoint import split

VM_MIB = 40 * 1024
"""Its static share of 15 % is 6 slices."""


def test_a_split_that_nobody_claims_yet_is_not_offered_twice(rack):
    assert split(rack, "auto", memory_mib=VM_MIB, instance="first").pool_mib == 6144
    second = split(rack, "auto", memory_mib=VM_MIB, instance="second")
    assert second.pool_mib == 0
    assert "pool pool0 has 1024 MiB" in second.reason
    assert split(rack, "auto", memory_mib=VM_MIB, instance="first").pool_mib == 6144


def test_a_promise_ends(rack):
    split(rack, "auto", memory_mib=VM_MIB, instance="first")
    rack.now = PENDING_SECONDS + 1
    assert split(rack, "auto", memory_mib=VM_MIB, instance="second").pool_mib == 6144


def test_a_promise_is_no_reason_to_refuse_a_fixed_share(rack):
    split(rack, "auto", memory_mib=VM_MIB, instance="first")
    assert split(rack, "fixed", pool_mib=6144, memory_mib=VM_MIB, instance="second").pool_mib == 6144


def test_what_is_claimed_and_not_assigned_is_taken(rack):
    rack.claims = {POOL: {"other": 2048}}
    assert split(rack, "auto", memory_mib=VM_MIB, instance="second").pool_mib == 0
    with pytest.raises(errors.PoolShortage, match="has 5120 MiB free of 8192 MiB"):
        split(rack, "fixed", pool_mib=6144, memory_mib=VM_MIB, instance="third")


def test_what_is_claimed_and_assigned_counts_once(rack):
    rack.assign(slices=1, consumer="first")
    rack.claims = {POOL: {"first": 1024}}
    assert split(rack, "auto", memory_mib=VM_MIB, instance="second").pool_mib == 6144


def test_a_promise_that_became_a_claim_counts_once(rack):
    split(rack, "auto", memory_mib=20 * 1024, instance="first")
    rack.claims = {POOL: {"first": 3072}}
    assert split(rack, "auto", memory_mib=28 * 1024, instance="second").pool_mib == 4096


def test_without_placement_the_ledger_alone_is_looked_at(rack):
    def away(_view: RackView) -> PoolClaims:
        raise errors.Unavailable("Placement does not answer")

    rack.board._claims = away
    assert split(rack, "auto", memory_mib=VM_MIB).pool_mib == 6144
