"""When a mitigation is at a step, by what the ledger has of it."""

from dataclasses import replace

import pytest

from pondstack.domain.mitigation import MitigationMethod, MitigationState, MitigationTrigger
from pondstack.ledger.records import MitigationRecord
from tests.robustness.mitigations.plan import STEPS, Step
from tests.robustness.mitigations.strike import is_at

RECORD = MitigationRecord(
    uuid="m",
    consumer_uuid="s",
    host="host1",
    project_id="p",
    method=MitigationMethod.MIGRATE,
    state=MitigationState.MOVING,
    trigger=MitigationTrigger.OPERATOR,
    forced=False,
    pool_mib=1024,
    left_mib=1024,
    reason="",
    evidence={},
    created_at=0.0,
    updated_at=0.0,
)


@pytest.mark.parametrize("reason", ["Nova was asked to move it to a host", "Nova works on the server: migrating"])
def test_a_move_that_nova_was_asked_for_is_a_step_of_its_own(reason: str) -> None:
    before, asked = Step(MitigationMethod.MIGRATE, MitigationState.MOVING), STEPS[8]
    assert asked.asked
    assert is_at(before, RECORD)
    assert not is_at(asked, RECORD)
    assert is_at(asked, replace(RECORD, reason=reason))
    assert not is_at(before, replace(RECORD, reason=reason))


def test_method_and_state_have_to_be_those_of_the_step() -> None:
    step = Step(MitigationMethod.COPY, MitigationState.MOVING)
    assert not is_at(step, RECORD)
    assert is_at(step, replace(RECORD, method=MitigationMethod.COPY))
    assert not is_at(step, replace(RECORD, method=MitigationMethod.COPY, state=MitigationState.CLAIMING))
    assert not is_at(step, None)
    assert not is_at(step, replace(RECORD, method=MitigationMethod.COPY, ended_at=1.0))
