"""Notifications of mitigations: what goes over the bus is what the samples of the documentation show."""

import json

import pytest

from pondstack.domain.mitigation import MitigationMethod, MitigationState, MitigationTrigger
from pondstack.ledger.records import MitigationRecord
from pondstack.telemetry.mitigation_events import MitigatedGuests, MitigationEvent

from .test_versioned import SAMPLES, bus

__all__ = ["bus"]

RECORD = {
    "uuid": "0d5a589f-5e0c-4d8a-9e7f-115b9b9c4e6f",
    "consumer_uuid": "0635cccd-1e78-5473-b66a-bacffc433357",
    "host": "host-1",
    "project_id": "7f1c3f3e0b8b5a5a9a1d2a3b4c5d6e7f",
    "method": MitigationMethod.COPY,
    "state": MitigationState.CLAIMING,
    "trigger": MitigationTrigger.MONITOR,
    "forced": False,
    "pool_mib": 2048,
    "left_mib": 2048,
    "reason": "",
    "evidence": {"touched_mib": 1024.0},
    "created_at": 1795280400.0,
    "updated_at": 1795280400.0,
}
ENDED = {"ended_at": 1795280412.0, "updated_at": 1795280412.0}
EVENTS = {
    "start": RECORD,
    "end": {**RECORD, **ENDED, "state": MitigationState.DONE, "left_mib": 0},
    "error": {
        **RECORD,
        **ENDED,
        "state": MitigationState.FAILED,
        "reason": "the agent of host-1 has not copied within 1800 s",
    },
}


@pytest.mark.parametrize("kind", EVENTS)
def test_the_sample_is_what_is_sent(bus, kind):
    conf, taken = bus()
    tell = MitigatedGuests(conf, "controller-1")
    tell(MitigationEvent(MitigationRecord(**EVENTS[kind]), kind))
    assert taken.get(timeout=30) == json.loads((SAMPLES / f"mitigation-{kind}.json").read_text())
    tell.close()


def test_neither_the_evidence_nor_a_model_is_told():
    assert "evidence" not in MitigationEvent(MitigationRecord(**RECORD), "start").payload()["pondstack_object.data"]
