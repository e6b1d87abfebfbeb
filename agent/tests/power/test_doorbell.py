"""Both ends of a doorbell over shared memory, which stands for RDMA: what wakes a host, and what does not."""

import threading
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest, HostUnusable, NotFound, Unavailable
from pondstack.domain.power import LOW_POWER_S0
from pondstack_agent.power.base import PowerDriver
from pondstack_agent.power.doorbell import SILENT, Doorbell
from pondstack_agent.power.ringer import Ringer
from pondstack_agent.power.transition import PowerTransitions
from pondstack_rack.wait import wait_until
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.shm import ShmTransport

pytestmark = pytest.mark.unit

SECONDS = 60.0
PAUSE = 0.01


@pytest.fixture
def transport(tmp_path):
    return ShmTransport(tmp_path)


@pytest.fixture
def rung():
    return []


@pytest.fixture
def doorbell(transport, rung):
    made = Doorbell(transport, "h1-doorbell", rung.append, PAUSE)
    yield made
    made.close()


@pytest.fixture
def ringer(transport):
    made = Ringer(transport, SECONDS)
    yield made
    made.close()


def write(transport, ring, token):
    """Write a token as somebody would who has the rest of a ring."""
    ticket, key = Ticket.from_dict(ring["ticket"]), Key.from_dict(ring["key"])
    with transport.connect(ticket, SECONDS) as link:
        link.write(key, 0, token)


def test_who_is_connected_rings_as_often_as_it_takes(doorbell, ringer, rung):
    ringer.connect("h1", "sleep-1", doorbell.arm("sleep-1", ["h2", "h3"])["rings"]["h2"])
    for times in (1, 2):
        ringer.ring("h1", "sleep-1")
        assert wait_until(lambda times=times: rung == ["sleep-1"] * times, SECONDS)


def test_another_token_wakes_nobody_and_keeps_nobody_from_ringing(transport, doorbell, ringer, rung):
    ring = doorbell.arm("sleep-1", ["h2"])["rings"]["h2"]
    armed = doorbell._armed
    for token in (b"\1" * len(SILENT), bytes.fromhex(ring["token"])[:-1] + b"\0"):
        write(transport, ring, token)
    assert armed._look() != SILENT
    assert rung == []
    ringer.connect("h1", "sleep-1", ring)
    ringer.ring("h1", "sleep-1")
    assert wait_until(lambda: rung == ["sleep-1"], SECONDS)


def test_what_was_for_one_sleep_is_worth_nothing_for_the_next(transport, doorbell, ringer, rung):
    former = doorbell.arm("sleep-1", ["h2"])["rings"]["h2"]
    ringer.connect("h1", "sleep-1", former)
    ring = doorbell.arm("sleep-2", ["h2"])["rings"]["h2"]
    assert ring["token"] != former["token"]
    with pytest.raises(NotFound):
        ringer.ring("h1", "sleep-2")
    with pytest.raises(Unavailable, match="is not reached"):
        ringer.ring("h1", "sleep-1")
    write(transport, ring, bytes.fromhex(former["token"]))
    assert doorbell._armed._look() != SILENT
    assert rung == []


def test_a_leader_that_repeats_it_finds_it_as_it_was(doorbell, ringer, rung):
    first, again = (doorbell.arm("sleep-1", ["h2"])["rings"]["h2"] for _ in range(2))
    assert first == again
    for ring in (first, again):
        ringer.connect("h1", "sleep-1", ring)
    ringer.ring("h1", "sleep-1")
    assert wait_until(lambda: rung == ["sleep-1"], SECONDS)


def test_a_doorbell_of_a_waker_that_died_is_not_rung(doorbell, ringer):
    ringer.connect("h1", "sleep-1", doorbell.arm("sleep-1", ["h2"])["rings"]["h2"])
    doorbell.close()
    with pytest.raises(Unavailable):
        ringer.ring("h1", "sleep-1")
    with pytest.raises(NotFound):
        ringer.ring("h1", "sleep-1")


def test_a_host_without_a_transport_has_none_and_says_so(rung):
    with pytest.raises(HostUnusable, match="doorbell is off"):
        Doorbell(None, "h1-doorbell", rung.append, PAUSE).arm("sleep-1", ["h2"])
    with pytest.raises(HostUnusable, match="transport is empty"):
        Ringer(None, SECONDS).connect("h1", "sleep-1", {})
    with pytest.raises(Unavailable):
        Doorbell(ShmTransport(Path("/proc/nothing")), "h1", rung.append, PAUSE).arm("sleep-1", ["h2"])


@pytest.mark.parametrize("token", [None, "", "00", "x" * 64, 7])
def test_a_ring_without_a_token_is_refused(doorbell, ringer, token):
    ring = doorbell.arm("sleep-1", ["h2"])["rings"]["h2"]
    with pytest.raises(BadRequest):
        ringer.connect("h1", "sleep-1", ring | {"token": token})


class Sleeping(PowerDriver):
    """Sleeps until woken."""

    mode = LOW_POWER_S0

    def __init__(self) -> None:
        self.asleep = threading.Event()

    def refusal(self):
        return ""

    def enter(self, woken):
        self.asleep.set()
        woken.wait()


def test_a_host_is_woken_from_the_sleep_that_it_was_rung_for_and_from_no_other(transport, ringer):
    driver = Sleeping()
    doorbell = Doorbell(transport, "h1-doorbell", lambda operation: transitions.rung(operation), PAUSE)
    transitions = PowerTransitions({"lowpower-s0": driver}, 0.0, ended=doorbell.disarm)
    ringer.connect("h1", "sleep-1", doorbell.arm("sleep-1", ["h2"])["rings"]["h2"])
    transitions.enter("sleep-1", "lowpower-s0")
    assert driver.asleep.wait(SECONDS)
    transitions.rung("sleep-0")
    assert not transitions._woken.is_set()
    ringer.ring("h1", "sleep-1")
    assert wait_until(lambda: transitions.told()["state"] == "woken", SECONDS)
    assert wait_until(lambda: doorbell._armed is None, SECONDS)
