"""Which states of a mitigation may follow which."""

import pytest

from pondstack.domain.errors import IllegalTransition
from pondstack.domain.mitigation import ABORTABLE, ENDED, TRANSITIONS, MitigationState, Work, check_transition


def test_each_open_state_leads_to_an_end_and_no_end_leads_on() -> None:
    for state in MitigationState:
        reached, todo = set(), [state]
        while todo:
            for after in TRANSITIONS[todo.pop()] - reached:
                reached.add(after)
                todo.append(after)
        assert bool(reached & ENDED) is (state not in ENDED)


def test_what_is_rewritten_is_not_undone() -> None:
    later = (MitigationState.REWRITING, MitigationState.RELEASING, MitigationState.UNCLAIMING)
    assert not any(MitigationState.UNDOING in TRANSITIONS[state] for state in later)
    assert not ABORTABLE & set(later)


@pytest.mark.parametrize("state", ENDED)
def test_an_end_is_one(state: MitigationState) -> None:
    with pytest.raises(IllegalTransition):
        check_transition(state, state)


def test_a_newer_releases_fields_are_dropped() -> None:
    assert Work.from_record({"guest_mib": 4, "tries": 1, "unheard_of": True}) == Work(4, tries=1)
