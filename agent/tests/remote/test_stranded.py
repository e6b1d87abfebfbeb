"""Guests that wait for pages of a host that may be lost: what is told when, and what is no such guest."""

import itertools
import logging
from dataclasses import replace

import pytest

from pondstack_agent.data_plane.views import HandoverView
from pondstack_agent.remote.handovers import HandoverLimits
from pondstack_agent.remote.stranded import StrandedGuests, lacks_pages

from .conftest import CONSUMER, RemoteHost

LIMITS = HandoverLimits("192.0.2.1", silence_seconds=30.0, abandoned_seconds=1000.0)
MEMORY, LOCAL, REMOTE = 8, 4, 4
ALONE = HandoverView("taking", connected=False)


class Waiting:
    """One guest, and the time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.guests = StrandedGuests(LIMITS, clock=lambda: self.now)

    def after(self, seconds: float, seen: HandoverView | None = ALONE) -> list[dict]:
        self.now += seconds
        self.guests.look("vm", seen)
        return self.guests.reported()


@pytest.fixture
def waiting() -> Waiting:
    made = Waiting()
    made.after(0.0)
    return made


@pytest.mark.parametrize(
    ("state", "connected"), list(itertools.product(("waiting", "taking", "complete", "over"), (False, True)))
)
def test_who_lacks_pages(state: str, connected: bool) -> None:
    assert lacks_pages(HandoverView(state, connected)) == (state in ("waiting", "taking") and not connected)
    assert not lacks_pages(None)


def test_it_is_told_after_the_silence_and_lost_at_the_end(waiting: Waiting, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    assert waiting.after(29.0) == []
    assert waiting.guests.problem("vm") == ""
    assert waiting.after(2.0) == [{"consumer_uuid": "vm", "seconds": 31, "lost": False}]
    assert "hard reboot the server. It is ended after 1000 s" in waiting.guests.problem("vm")
    assert waiting.guests.lost() == []
    waiting.after(500.0)
    assert waiting.after(500.0) == [{"consumer_uuid": "vm", "seconds": 1031, "lost": True}]
    assert waiting.guests.lost() == ["vm"]
    waiting.after(1.0)
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"], "once each"


@pytest.mark.parametrize("seen", [None, replace(ALONE, connected=True), replace(ALONE, state="complete")])
def test_who_gets_its_pages_waits_no_more(waiting: Waiting, seen: HandoverView | None) -> None:
    waiting.after(2000.0)
    assert waiting.after(0.0, seen) == []
    assert waiting.guests.lost() == []
    assert waiting.after(0.0) == []
    assert waiting.after(29.0) == [], "it counts anew"


@pytest.fixture
def host(rack) -> RemoteHost:
    """A host whose guest came from another one, and lacks pages."""
    rack.lend("host1", REMOTE)
    made = rack.borrower
    made.alloc(REMOTE)
    made.data_plane.boot(CONSUMER, MEMORY)
    made.calls.extend(consumer_uuid=CONSUMER, memory_mib=MEMORY, local_mib=LOCAL)
    mine = made.remote._consumers.get(CONSUMER)
    made.remote._consumers.put(mine, extension=replace(mine.extension, incoming=True))
    found = made.data_plane.served[CONSUMER]
    made.data_plane.served[CONSUMER] = replace(found, handover=ALONE)
    return made


def wait(host: RemoteHost, seconds: float) -> None:
    """Let time pass for what the agent has noted."""
    stranded = host.remote._extensions.stranded
    stranded._since = {guest: since - seconds for guest, since in stranded._since.items()}
    host.beat()


def test_the_agent_tells_who_cannot_go_on(host: RemoteHost) -> None:
    host.beat()
    assert host.calls.get_lost_guests() == []
    wait(host, 40.0)
    assert host.view()["extension"]["problem"].startswith("it waits for 4")
    assert [told["lost"] for told in host.remote.reported()["stranded"]] == [False]
    wait(host, 3600.0)
    assert host.calls.get_lost_guests() == [CONSUMER]
    host.data_plane.end(CONSUMER)
    del host.data_plane.served[CONSUMER]
    host.beat()
    assert host.calls.get_lost_guests() == host.remote.reported()["stranded"] == []


def test_a_guest_that_leaves_waits_for_nobody(host: RemoteHost) -> None:
    mine = host.remote._consumers.get(CONSUMER)
    host.remote._consumers.put(mine, extension=replace(mine.extension, incoming=False))
    host.beat()
    assert host.remote._extensions.stranded._since == {}


def test_one_whose_pages_have_all_come_waits_no_more(host: RemoteHost) -> None:
    host.beat()
    wait(host, 40.0)
    host.data_plane.served[CONSUMER] = replace(host.data_plane.served[CONSUMER], handover=None)
    host.beat()
    assert host.remote.reported()["stranded"] == []
