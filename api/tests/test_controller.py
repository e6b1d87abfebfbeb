"""Calls of the controller end, even when the broker swallows them."""

import threading

import pytest

from pondstack.domain.errors import GenerationConflict, Unavailable
from pondstack_api import controller
from pondstack_api.controller import bounded

SECONDS = 60.0
"""For what must happen; what hangs does so for as long."""


class Hanging:
    """A controller behind a broker that is gone."""

    def __init__(self):
        self.back = threading.Event()
        self.calls = self.ended = 0
        self.handed_over = []

    def set_host(self, **_):
        """Hang until the broker is back."""
        self.calls += 1
        self.back.wait(SECONDS)
        self.ended += 1
        return {"generation": 1}

    def delegate_host(self, **arguments):
        """Hang until the broker is back."""
        self.back.wait(SECONDS)
        return arguments

    reclaim_host = delegate_host

    def audit(self, *, repair):
        """Refuse."""
        raise GenerationConflict(f"repair {repair}")

    def failover(self, *, leader, to):
        """Hang until the broker is back."""
        self.back.wait(SECONDS)
        self.handed_over.append((leader, to))


@pytest.fixture
def hanging():
    """Let all go at the end."""
    made = Hanging()
    yield made
    made.back.set()


def set_host(client):
    return client.set_host(name="host-1", enabled=True, reason="", generation=0)


def test_an_answer(hanging):
    hanging.back.set()
    assert set_host(bounded(hanging, SECONDS)) == {"generation": 1}


def test_an_error_is_the_controllers_own(hanging):
    with pytest.raises(GenerationConflict, match="repair True"):
        bounded(hanging, SECONDS).audit(repair=True)


def test_silence_is_unavailable_in_time(hanging):
    with pytest.raises(Unavailable, match="may still take effect"):
        set_host(bounded(hanging, 0.05))
    assert hanging.ended == 0, "the call hangs still, and its caller has an answer"


def test_a_fail_over_is_bounded_too(hanging):
    with pytest.raises(Unavailable, match="may still take effect"):
        bounded(hanging, 0.05).failover(leader="controller-1", to=None)
    hanging.back.set()
    bounded(hanging, SECONDS).failover(leader="controller-1", to="controller-2")
    assert ("controller-1", "controller-2") in hanging.handed_over


def test_calls_to_lenders_are_bounded_and_handed_on_as_they_are(hanging):
    lend = {"name": "host-1", "mib": 512, "kind": "zombie", "operation_id": "an id"}
    reclaim = {"name": "host-1", "mib": 64, "seconds": 1.5, "operation_id": None}
    impatient = bounded(hanging, 0.05)
    with pytest.raises(Unavailable, match="may still take effect"):
        impatient.delegate_host(**lend)
    with pytest.raises(Unavailable, match="may still take effect"):
        impatient.reclaim_host(**reclaim)
    hanging.back.set()
    assert bounded(hanging, SECONDS).delegate_host(**lend) == lend
    assert bounded(hanging, SECONDS).reclaim_host(**reclaim) == reclaim


def test_hanging_calls_are_counted_and_more_are_refused_unsent(hanging, monkeypatch):
    monkeypatch.setattr(controller, "HANGING_CALLS_MAX", 2)
    client = bounded(hanging, 0.05)
    for _ in range(2):
        with pytest.raises(Unavailable, match="may still take effect"):
            set_host(client)
    with pytest.raises(Unavailable, match="was not sent"):
        set_host(client)
    assert hanging.calls == 2


def test_calls_that_ended_hold_nothing(hanging, monkeypatch):
    monkeypatch.setattr(controller, "HANGING_CALLS_MAX", 1)
    hanging.back.set()
    client = bounded(hanging, SECONDS)
    for _ in range(3):
        assert set_host(client) == {"generation": 1}
        with pytest.raises(GenerationConflict):
            client.audit(repair=False)
