"""The state machine of a slice: what it allows, and what it can never allow."""

import itertools

import pytest

from pondstack.domain.errors import IllegalTransition
from pondstack.domain.states import OWNED, TRANSITIONS, SliceEvent, SliceState, next_state


def test_every_pair_outside_the_table_raises() -> None:
    for state, event in itertools.product(SliceState, SliceEvent):
        if (state, event) in TRANSITIONS:
            assert next_state(state, event) is TRANSITIONS[state, event]
        else:
            with pytest.raises(IllegalTransition, match=f"{state} cannot take the event {event}"):
                next_state(state, event)


def test_only_sanitising_frees_a_slice() -> None:
    into_free = {(state, event) for (state, event), after in TRANSITIONS.items() if after is SliceState.FREE}
    assert into_free == {(SliceState.SANITIZING, SliceEvent.SANITIZED)}


def test_an_owner_is_dropped_only_by_confirmation_or_quarantine() -> None:
    drops = {event for (state, event), after in TRANSITIONS.items() if state in OWNED and after not in OWNED}
    assert drops == {SliceEvent.CONFIRM, SliceEvent.QUARANTINE}


def test_every_state_leads_back_to_free() -> None:
    reach = {SliceState.FREE}
    for _ in SliceState:
        reach |= {state for (state, _), after in TRANSITIONS.items() if after in reach}
    assert reach == set(SliceState)


def test_quarantine_is_left_by_audit_or_back_to_its_owner() -> None:
    out = {event: after for (state, event), after in TRANSITIONS.items() if state is SliceState.QUARANTINED}
    assert out == {
        SliceEvent.AUDIT: SliceState.SANITIZING,
        SliceEvent.REINSTATE: SliceState.ONLINE,
        SliceEvent.HAND_OVER: SliceState.ASSIGNING,
    }


def test_nothing_is_handed_over_that_has_no_owner() -> None:
    handed = {state for (state, event) in TRANSITIONS if event is SliceEvent.HAND_OVER}
    assert handed == {SliceState.ONLINE, SliceState.RELEASING, SliceState.QUARANTINED}


def test_only_what_was_its_owners_comes_online_without_an_acknowledgement() -> None:
    back = {state for (state, event) in TRANSITIONS if event is SliceEvent.REINSTATE}
    assert back == {SliceState.RELEASING, SliceState.QUARANTINED}
