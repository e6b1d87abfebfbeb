"""What the agent decides of hand-overs, over a data plane that is played; test_moving_guest.py has a real guest."""

import contextlib
import itertools
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pondstack.domain.errors import BadRequest, Conflict, HostUnusable, NotFound
from pondstack_agent.data_plane.errors import DataPlaneRefused
from pondstack_agent.data_plane.views import HandoverView
from pondstack_agent.remote.handovers import HandoverLimits, abandoned
from pondstack_agent.remote.records import State
from pondstack_agent.remote.session_keys import SessionKeys
from pondstack_rack.wait import wait_until

from ..lending.conftest import DEADLINE_SECONDS
from .conftest import CONSUMER, RemoteHost

MEMORY, LOCAL, REMOTE = 8, 4, 4
SIZES = {"memory_mib": MEMORY, "local_mib": LOCAL, "disk_mib": 0}
PUBLIC = SessionKeys().begin(CONSUMER)
LIMITS = HandoverLimits("192.0.2.1", arrival_seconds=100.0, abandoned_seconds=1000.0)


@pytest.fixture
def host(rack) -> RemoteHost:
    """A host whose guest is served, and may leave."""
    rack.lend("host1", REMOTE)
    made = rack.borrower
    made.conf.set_override("handover_address", "192.0.2.1", group="data_plane")
    made.restart()
    made.alloc(REMOTE)
    made.data_plane.boot(CONSUMER, MEMORY)
    made.calls.extend(consumer_uuid=CONSUMER, memory_mib=MEMORY, local_mib=LOCAL)
    return made


@pytest.fixture
def empty(rack) -> Iterator[RemoteHost]:
    """A host that has borrowed for a guest that is to come; nobody waits for that once the test has ended."""
    rack.lend("host1", REMOTE)
    rack.borrower.alloc(REMOTE)
    yield rack.borrower
    waits = f"arrival-{CONSUMER[:8]}"
    assert wait_until(lambda: waits not in {each.name for each in threading.enumerate()}, DEADLINE_SECONDS)


def hand_over(host: RemoteHost) -> dict[str, Any]:
    return host.calls.hand_over(consumer_uuid=CONSUMER, public=PUBLIC)


def going(host: RemoteHost) -> HandoverView:
    found = host.data_plane.served[CONSUMER].handover
    assert found
    return found


def set_going(host: RemoteHost, **changes: Any) -> None:
    found = host.data_plane.served[CONSUMER]
    host.data_plane.served[CONSUMER] = replace(found, handover=replace(going(host), **changes))


def test_both_sides_make_the_same_key() -> None:
    here, there = SessionKeys(), SessionKeys()
    first, second = here.begin(CONSUMER), there.begin(CONSUMER)
    key = here.agree(CONSUMER, second)
    assert key == there.agree(CONSUMER, first)
    assert len(bytes.fromhex(key)) == 32
    assert key not in (first, second)
    other = "8ac7e33b-55c9-4f7f-8b23-c4a1f2c52f3b"
    here.begin(other)
    assert here.agree(other, second) != key
    for bad in ("", "01", "zz" * 32, "00" * 32):
        with pytest.raises(BadRequest, match="public"):
            here.agree(CONSUMER, bad)
    here.forget(CONSUMER)
    with pytest.raises(Conflict, match="migrate it again"):
        here.agree(CONSUMER, second)


STATES = ("offered", "frozen", "switched", "delivered", "waiting", "taking")


@pytest.mark.parametrize(
    ("state", "connected", "seconds", "consumer"),
    list(itertools.product(STATES, (False, True), (50.0, 500.0, 5000.0), (State.ACTIVE, State.ENDING))),
)
def test_what_is_given_up(state: str, connected: bool, seconds: float, consumer: State) -> None:
    """An offer that nobody came for; pages of a guest that has left, which nobody fetches: nothing else, ever."""
    verb = abandoned(HandoverView(state, connected), seconds, consumer, LIMITS)
    nobody = not connected
    assert (verb == "withdraw") == (state == "offered" and nobody and seconds > 100.0)
    assert (verb == "forget") == (state == "switched" and nobody and seconds > 1000.0 and consumer is State.ENDING)


def test_a_guest_is_offered(host: RemoteHost) -> None:
    told = hand_over(host)
    assert (told["host"], told["port"]) == ("192.0.2.1", 7601)
    assert told["public"] != PUBLIC
    assert host.data_plane.keys[CONSUMER] not in (PUBLIC, told["public"])
    assert host.view()["extension"]["handover"]["state"] == "offered"
    again = hand_over(host)
    assert again["public"] != told["public"], "nobody came for the first one"
    set_going(host, connected=True)
    with pytest.raises(Conflict, match="call take_back first"):
        hand_over(host)
    assert host.calls.take_back(consumer_uuid=CONSUMER)
    assert not host.calls.take_back(consumer_uuid=CONSUMER)
    assert host.data_plane.served[CONSUMER].handover is None


def test_who_is_not_offered(host: RemoteHost) -> None:
    found = host.data_plane.processes[CONSUMER]
    host.data_plane.processes[CONSUMER] = replace(found, is_file=False)
    with pytest.raises(Conflict, match="hard reboot it"):
        hand_over(host)
    host.data_plane.processes[CONSUMER] = found
    host.data_plane.keeps = False
    with pytest.raises(Conflict, match="restart pondstack-data-plane"):
        hand_over(host)
    assert host.data_plane.served[CONSUMER].handover is None
    host.conf.set_override("handover_address", "", group="data_plane")
    host.restart()
    with pytest.raises(HostUnusable, match="set \\[data_plane\\] handover_address"):
        hand_over(host)
    with pytest.raises(NotFound):
        host.calls.hand_over(consumer_uuid="8ac7e33b-55c9-4f7f-8b23-c4a1f2c52f3b", public=PUBLIC)
    assert host.data_plane.served[CONSUMER].handover is None


def test_its_pages_are_kept_for_its_destination(host: RemoteHost) -> None:
    """Until that has them, or nobody has come for long; what was borrowed as well."""
    hand_over(host)
    host.data_plane.end(CONSUMER)
    host.beat()
    assert going(host).is_switched
    with pytest.raises(Conflict, match="runs on another host"):
        host.calls.take_back(consumer_uuid=CONSUMER)
    assert host.release()
    assert host.view()["state"] == "ending"
    del host.data_plane.served[CONSUMER]  # it is delivered
    assert wait_until(lambda: host.beat() or host.calls.get_remote(consumer_uuid=CONSUMER) is None, DEADLINE_SECONDS)


def test_who_is_not_expected(empty: RemoteHost) -> None:
    for origin in (
        {},
        {"host": "nowhere", "port": 1, "public": PUBLIC},
        {"host": "192.0.2.1", "port": 0, "public": ""},
    ):
        with pytest.raises(BadRequest, match="origin"):
            empty.calls.receive_guest(consumer_uuid=CONSUMER, **SIZES, origin=origin)
    good = {"host": "192.0.2.1", "port": 7601, "public": PUBLIC}
    with pytest.raises(Conflict, match="migrate it again"):
        empty.calls.receive_guest(consumer_uuid=CONSUMER, **SIZES, origin=good)
    assert empty.calls.expect_guest(consumer_uuid=CONSUMER)
    with pytest.raises(BadRequest, match="do not fit"):
        empty.calls.receive_guest(consumer_uuid=CONSUMER, **{**SIZES, "local_mib": 1}, origin=good)
    empty.data_plane.boot(CONSUMER, MEMORY)
    empty.calls.extend(consumer_uuid=CONSUMER, memory_mib=MEMORY, local_mib=LOCAL)
    with pytest.raises(Conflict, match="cannot come again"):
        empty.calls.expect_guest(consumer_uuid=CONSUMER)


@pytest.mark.parametrize(
    ("says", "comes"),
    [
        ("process 4711 was not started with -uuid 1", True),
        ("no shared writable mapping with memfd", True),
        ("process 4711 has ended", False),
    ],
)
def test_a_process_that_is_starting_is_waited_for(
    empty: RemoteHost, monkeypatch: pytest.MonkeyPatch, says: str, comes: bool
) -> None:
    """A shim around QEMU becomes QEMU: the data plane may look before that has a command line, or its memory."""
    empty.calls.expect_guest(consumer_uuid=CONSUMER)
    origin = {"host": "192.0.2.1", "port": 7601, "public": PUBLIC}
    empty.calls.receive_guest(consumer_uuid=CONSUMER, **SIZES, origin=origin)
    empty.data_plane.boot(CONSUMER, MEMORY)
    attach, looks = empty.data_plane.attach, iter([says, says, ""])

    def attach_later(*arguments: Any) -> Any:
        if refusal := next(looks):
            raise DataPlaneRefused(refusal)
        return attach(*arguments)

    monkeypatch.setattr(empty.data_plane, "attach", attach_later)
    with contextlib.nullcontext() if comes else pytest.raises(DataPlaneRefused, match=says):
        empty.remote.moves._attach(CONSUMER, 4711)
    assert (CONSUMER in empty.data_plane.served) is comes


def test_a_guest_that_came_is_never_attached_as_if_it_had_been_here(host: RemoteHost) -> None:
    """Its memory here is empty, should the data plane not know it."""
    consumers = host.remote._consumers
    mine = consumers.get(CONSUMER)
    consumers.put(mine, extension=replace(mine.extension, incoming=True))
    host.beat()
    assert consumers.get(CONSUMER).extension.incoming is False, "all is here"
    mine = consumers.get(CONSUMER)
    consumers.put(mine, extension=replace(mine.extension, incoming=True))
    del host.data_plane.served[CONSUMER]
    host.beat()
    assert CONSUMER not in host.data_plane.served
    assert consumers.get(CONSUMER).extension.incoming
