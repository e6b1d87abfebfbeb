"""Requests pass while the lease is sure; a hand-over waits for those inside."""

import threading

import pytest

from pondstack.controller.gate import Gate
from pondstack.domain.errors import NotLeader
from pondstack.tests.controller.conftest import call


def refuse() -> None:
    raise NotLeader("the lease is not sure")


def test_an_unsure_leader_refuses() -> None:
    with pytest.raises(NotLeader, match="not sure"), Gate(refuse).passing():
        pytest.fail("nobody gets in")


def test_a_shut_gate_refuses_for_good_with_its_first_reason() -> None:
    gate = Gate()
    gate.shut("handed over")
    gate.shut("ended")
    with pytest.raises(NotLeader, match="handed over; call again"), gate.passing():
        pytest.fail("nobody gets in")


def test_draining_waits_for_those_inside() -> None:
    gate, inside, leave = Gate(), threading.Event(), threading.Event()

    def request() -> None:
        with gate.passing():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=request)
    thread.start()
    assert inside.wait(10)
    gate.shut("handed over")
    assert not gate.drained(0.01)
    leave.set()
    assert gate.drained(10)
    thread.join(10)


def test_a_request_that_fails_is_outside_again() -> None:
    gate = Gate()
    with pytest.raises(ZeroDivisionError), gate.passing():
        raise ZeroDivisionError
    assert gate.drained(0.0)


def test_every_method_of_the_leader_is_behind_the_gate(rack) -> None:
    rack.endpoint.gate.shut("handed over")
    requests = {
        "assign": {"operation_id": "o", "consumer_uuid": "c", "host": "h", "pool_uuid": "p", "pool_mib": 1},
        "acknowledge": {"operation_id": "o", "allocation_uuid": "a", "host": "h"},
        "take_up": {"allocation_uuid": "a", "host": "h"},
        "release": {"operation_id": "o", "allocation_uuid": "a", "host": "h"},
        "heartbeat": {"report": {}},
        "telemetry": {"host": "h", "samples": []},
        "get_split": {"features": {}},
        "snapshot": {},
        "set_host": {"name": "h", "enabled": True, "reason": "", "generation": None},
        "audit": {"repair": True},
        "fence_host": {"name": "h", "reason": "x", "force": True},
        "unfence_host": {"name": "h"},
    }
    requests["assign"]["guest_mib"] = 1
    internal = {"receive", "target", "gate", "reconciler"}
    public = {name for name in vars(type(rack.endpoint)) if not name.startswith("_")} - internal
    assert public == set(requests)
    for name, arguments in requests.items():
        with pytest.raises(NotLeader):
            call(getattr(rack.endpoint, name), **arguments)
    with pytest.raises(NotLeader):
        call(rack.split_endpoint.record_splits, splits=[])
