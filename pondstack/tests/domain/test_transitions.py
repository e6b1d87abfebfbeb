"""The ledger's invariants hold whatever happens in whatever order; and each check sees its own breach."""

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from pondstack.domain.allocator import choose_extents
from pondstack.domain.causes import Cause
from pondstack.domain.errors import IllegalTransition, PoolShortage
from pondstack.domain.model import Allocation, Pool, Slice, indexes_of
from pondstack.domain.states import OWNED, SliceEvent, SliceState
from pondstack.domain.transitions import LedgerView, fates, reinstatable, transition, violations

POOLS = {"a": Pool("a", "pool-a", 6), "b": Pool("b", "pool-b", 3)}
HOSTS = ("h1", "h2")


class LedgerMachine(RuleBasedStateMachine):
    """A small ledger of two devices and two hosts, driven by any order of events."""

    allocations = Bundle("allocations")

    def __init__(self):
        super().__init__()
        self.slices = {
            (uuid, index): Slice(uuid, index) for uuid, pool in POOLS.items() for index in range(pool.slices_total)
        }
        self.held = {}
        self.number = 0
        self.dirty = set()

    def view(self):
        return LedgerView(POOLS, tuple(self.slices.values()), self.held)

    def of(self, uuid):
        return [item for item in self.slices.values() if item.allocation_uuid == uuid]

    def move(self, items, event, **owner):
        """All of them or none, as one transaction does."""
        try:
            changed = [transition(item, event, epoch=1, **owner) for item in items]
        except IllegalTransition:
            return False
        for item in changed:
            self.slices[item.pool_uuid, item.index] = item
        pointed = {item.allocation_uuid for item in self.slices.values()}
        self.held = {uuid: allocation for uuid, allocation in self.held.items() if uuid in pointed}
        return bool(changed)

    @rule(target=allocations, pool=st.sampled_from(sorted(POOLS)), host=st.sampled_from(HOSTS), count=st.integers(1, 4))
    def assign(self, pool, host, count):
        free = [index for (uuid, index), item in self.slices.items() if uuid == pool and item.state is SliceState.FREE]
        self.number += 1
        uuid = f"allocation-{self.number}"
        try:
            extents = choose_extents(free, count)
        except PoolShortage:
            return uuid
        chosen = [self.slices[pool, index] for index in indexes_of(extents)]
        assert not self.dirty & {(item.pool_uuid, item.index) for item in chosen}, "handed on without sanitising"
        assert all(item.host is None for item in chosen)
        self.held[uuid] = Allocation(uuid, "consumer", host, pool, extents)
        assert self.move(chosen, SliceEvent.ASSIGN, host=host, allocation_uuid=uuid)
        self.dirty |= {(item.pool_uuid, item.index) for item in chosen}
        return uuid

    @rule(uuid=allocations)
    def acknowledge(self, uuid):
        self.move(self.of(uuid), SliceEvent.ACKNOWLEDGE)

    @rule(uuid=allocations)
    def release(self, uuid):
        self.move(self.of(uuid), SliceEvent.RELEASE)

    @rule(uuid=allocations)
    def reclaim(self, uuid):
        back = reinstatable(self.of(uuid))
        owners = {(item.host, item.allocation_uuid) for item in back}
        assert self.move(back, SliceEvent.REINSTATE) == bool(back)
        assert {(item.host, item.allocation_uuid) for item in self.of(uuid) if back} == owners
        assert not back or {item.state for item in self.of(uuid)} == {SliceState.ONLINE}

    @rule(uuid=consumes(allocations))
    def confirm(self, uuid):
        self.move(self.of(uuid), SliceEvent.CONFIRM)

    @rule(uuid=allocations, cause=st.sampled_from(Cause))
    def quarantine_allocation(self, uuid, cause):
        self.move(self.of(uuid), SliceEvent.QUARANTINE, reason=cause.reason("for the test"), cause=cause)

    @rule(key=st.sampled_from(["a", "b"]), index=st.integers(0, 2), host=st.sampled_from([None, *HOSTS]))
    def quarantine_slice(self, key, index, host):
        item = self.slices[key, index]
        if item.state not in OWNED:
            self.move([item], SliceEvent.QUARANTINE, reason="unknown: it was found", cause=Cause.UNKNOWN, host=host)

    @rule(uuid=allocations)
    def audit_allocation(self, uuid):
        self.move(self.of(uuid), SliceEvent.AUDIT)

    @rule(key=st.sampled_from(["a", "b"]), index=st.integers(0, 2))
    def audit_slice(self, key, index):
        if self.slices[key, index].allocation_uuid is None:
            self.move([self.slices[key, index]], SliceEvent.AUDIT)

    @rule(key=st.sampled_from(["a", "b"]))
    def sanitised(self, key):
        done = [item for (uuid, _), item in self.slices.items() if uuid == key and item.state is SliceState.SANITIZING]
        self.move(done, SliceEvent.SANITIZED)
        self.dirty -= {(item.pool_uuid, item.index) for item in done}

    @invariant()
    def sound(self):
        assert violations(self.view()) == []

    @invariant()
    def dirty_slices_are_never_free(self):
        assert all(self.slices[key].state is not SliceState.FREE for key in self.dirty)


LedgerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLedgerMachine = LedgerMachine.TestCase


def sound():
    pools = {"a": Pool("a", "pool-a", 2)}
    held = {"x": Allocation("x", "consumer", "h1", "a", choose_extents([0], 1))}
    slices = (Slice("a", 0, SliceState.ONLINE, "h1", "x"), Slice("a", 1))
    return LedgerView(pools, slices, held)


def broken(code):
    view = sound()
    first, second = view.slices
    return {
        "slice_twice": replace(view, slices=(first, second, second)),
        "owner_missing": replace(view, slices=(first, replace(second, state=SliceState.RELEASING))),
        "owner_left": replace(view, slices=(first, replace(second, host="h1"))),
        "cause_missing": replace(view, slices=(first, replace(second, state=SliceState.QUARANTINED, reason="x"))),
        "owner_unknown": replace(view, slices=(first, replace(first, index=1, allocation_uuid="y"))),
        "pool_unknown": replace(view, slices=(*view.slices, Slice("z", 0))),
        "total_changed": replace(view, slices=(first,)),
        "several_devices": replace(view, slices=(first, second, replace(first, pool_uuid="b"))),
        "extents_differ": replace(view, slices=(first, replace(first, index=1))),
        "several_hosts": replace(view, slices=(replace(first, host="h2"), second)),
    }[code]


def test_a_sound_ledger_has_no_violation():
    assert violations(sound()) == []


@pytest.mark.parametrize(
    "code",
    [
        "slice_twice",
        "owner_missing",
        "owner_left",
        "cause_missing",
        "owner_unknown",
        "pool_unknown",
        "total_changed",
        "several_devices",
        "extents_differ",
        "several_hosts",
    ],
)
def test_each_breach_is_seen(code):
    assert code in {item.code for item in violations(broken(code))}


def test_an_assignment_needs_an_owner():
    with pytest.raises(ValueError, match="needs a host"):
        transition(Slice("a", 0), SliceEvent.ASSIGN, epoch=1)


@pytest.mark.parametrize("state", [*sorted(OWNED), SliceState.QUARANTINED])
def test_what_its_host_lets_go_is_sanitised(state):
    cause = Cause.AGENT_DOWN if state is SliceState.QUARANTINED else None
    [fate] = fates([Slice("a", 0, state, "h1", "a1", reason="agent_down", cause=cause)])
    item = fate.items[0]
    for event in fate.events:
        item = transition(item, event, epoch=1, reason=fate.reason, cause=fate.cause)
    assert (item.state, item.reason, item.cause) == (SliceState.SANITIZING, "", None)


@pytest.mark.parametrize("state", sorted(OWNED))
def test_what_its_host_found_not_zero_is_set_aside(state):
    other, fate = fates([Slice("a", 0, state, "h1", "a1"), Slice("a", 1, state, "h1", "a1")], not_zero=[1])
    assert ([item.index for item in other.items], other.cause) == ([0], None)
    item = fate.items[0]
    for event in fate.events:
        item = transition(item, event, epoch=1, reason=fate.reason, cause=fate.cause)
    assert (item.index, item.state, item.cause) == (1, SliceState.QUARANTINED, Cause.SANITIZE_FAILED)
    assert (item.host, item.allocation_uuid) == (None, None)


def test_what_is_on_a_failed_device_stays_aside_without_an_owner():
    failed = Slice(
        "a", 0, SliceState.QUARANTINED, "h1", "a1", reason="device_failed: broken", cause=Cause.DEVICE_FAILED
    )
    [other, fate] = fates([failed, Slice("a", 1, SliceState.ONLINE, "h1", "a1")])
    assert [item.index for item in other.items] == [1]
    item = fate.items[0]
    for event in fate.events:
        item = transition(item, event, epoch=1, reason=fate.reason, cause=fate.cause)
    assert item == replace(failed, host=None, allocation_uuid=None, epoch=1)


@pytest.mark.parametrize(
    "aside",
    [
        Slice("a", 0, SliceState.QUARANTINED, "h1", "a1", reason="agent_down: no", cause=Cause.AGENT_LOST),
        Slice("a", 0, SliceState.QUARANTINED, "h1", None, cause=Cause.AGENT_DOWN),
        Slice("a", 0, SliceState.QUARANTINED, None, "a1", cause=Cause.AGENT_DOWN),
    ],
    ids=["for another reason", "without an allocation", "without a host"],
)
def test_what_is_aside_goes_back_to_a_silent_owner_only(aside):
    with pytest.raises(IllegalTransition, match="slice a/0 was set aside"):
        transition(aside, SliceEvent.REINSTATE, epoch=1)
    assert reinstatable([aside, Slice("a", 1, SliceState.RELEASING, "h1", "a1")]) == []


def test_what_goes_back_keeps_its_owner_and_loses_its_reason():
    aside = Slice("a", 0, SliceState.QUARANTINED, "h1", "a1", cause=Cause.AGENT_DOWN)
    assert reinstatable([aside, Slice("a", 1, SliceState.ONLINE, "h1", "a1")]) == [aside]
    assert transition(aside, SliceEvent.REINSTATE, epoch=2) == Slice("a", 0, SliceState.ONLINE, "h1", "a1", epoch=2)


@pytest.mark.parametrize(("cause", "reason"), [(None, "agent_down: x"), (Cause.AGENT_DOWN, "agent_lost: x")])
def test_a_quarantine_names_its_cause_and_its_reason_begins_with_it(cause, reason):
    with pytest.raises(ValueError, match="begins with its cause"):
        transition(Slice("a", 0), SliceEvent.QUARANTINE, epoch=1, reason=reason, cause=cause)
