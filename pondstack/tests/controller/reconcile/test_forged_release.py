"""Attack: somebody who reaches the bus, and no more, says that a host has released what its guest runs on.

A mapping of the device's file stands for the guest of h1: its bytes must stay, and nobody else may get its slices.
"""

import contextlib
import mmap
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from pondstack.domain.errors import AgentUnavailable, Conflict, PondError
from pondstack.domain.states import SliceState
from pondstack.domain.units import MIB
from pondstack.rpc.wire import Grant, Report
from pondstack.tests.controller.conftest import POOL, Rack, call

SECRET = b"SECRET of the victim's"


@pytest.fixture
def victim(rack: Rack) -> Grant:
    grant: Grant = rack.online("h1", slices=2)
    rack.beat("h1")
    return grant


@pytest.fixture
def guest(rack: Rack, device: Any, victim: Grant) -> Iterator[mmap.mmap]:
    """What the victim's guest sees of its first slice."""
    del rack
    offset = victim.extents[0].start * 1024 * MIB
    with open(device.path / "memory", "r+b") as file:
        seen = mmap.mmap(file.fileno(), MIB, offset=offset)
        seen[: len(SECRET)] = SECRET
        try:
            yield seen
        finally:
            seen.close()


def told_by_call(rack: Rack, uuid: str) -> None:
    call(rack.endpoint.release, operation_id=str(uuid4()), allocation_uuid=uuid, host="h1")


def told_by_heartbeat(rack: Rack, uuid: str) -> None:
    forged = Report("h1", 10**9, 1, "0.1.0", pools=(POOL,), released=(uuid,))
    assert call(rack.endpoint.heartbeat, report=forged.to_wire())["forget"] == []


def told_by_silence(rack: Rack, _uuid: str) -> None:
    """A heartbeat that just leaves it out."""
    forged = Report("h1", 10**9, 1, "0.1.0", pools=(POOL,))
    call(rack.endpoint.heartbeat, report=forged.to_wire())


def told_as_not_zero(rack: Rack, uuid: str) -> None:
    forged = Report("h1", 10**9, 1, "0.1.0", pools=(POOL,), released=(uuid,), not_zero={uuid: [0, 1]})
    call(rack.endpoint.heartbeat, report=forged.to_wire())


def told_by_another_host(rack: Rack, uuid: str) -> None:
    """h2 is asked for its own report, and answers with one of h1."""
    mine = rack.agents["h2"]
    honest = mine.report
    mine.report = lambda: replace(honest(), host="h1", sequence=10**9, attached=(), released=(uuid,))
    rack.limits = replace(rack.limits, settle_seconds=-3600.0)
    call(rack.endpoint.audit, repair=True)
    mine.report = honest


FORGERIES = (told_by_call, told_by_heartbeat, told_by_silence, told_as_not_zero, told_by_another_host)


@pytest.mark.parametrize("forge", FORGERIES)
def test_a_forged_release_changes_nothing(
    rack: Rack, victim: Grant, guest: mmap.mmap, forge: Callable[[Rack, str], None]
) -> None:
    before = rack.states()
    for _ in range(2):
        with contextlib.suppress(Conflict):
            forge(rack, victim.allocation_uuid)
        rack.sanitizer.drain()
        rack.reconcile()
        assert rack.states() == before
        with pytest.raises(PondError):
            rack.assign("h2", slices=7)
        assert guest[: len(SECRET)] == SECRET


def test_a_forged_release_of_what_is_not_online_yet_changes_nothing(rack: Rack) -> None:
    """Its host has the grant, and no report lists it so far: what no report lists is not released."""
    grant = rack.assign("h1")
    with pytest.raises(Conflict, match="does not report"):
        told_by_call(rack, grant.allocation_uuid)
    told_by_heartbeat(rack, grant.allocation_uuid)
    rack.sanitizer.drain()
    assert rack.count(SliceState.ASSIGNING) == 2


def test_while_its_host_does_not_answer_nothing_is_released(rack: Rack, victim: Grant) -> None:
    rack.agents["h1"].up = False
    with pytest.raises(AgentUnavailable):
        told_by_call(rack, victim.allocation_uuid)
    told_by_heartbeat(rack, victim.allocation_uuid)
    rack.sanitizer.drain()
    assert rack.count(SliceState.ONLINE) == 2


def test_an_answer_that_lists_it_as_released_and_as_attached_proves_nothing(rack: Rack, victim: Grant) -> None:
    rack.agents["h1"].released.append(victim.allocation_uuid)
    with pytest.raises(Conflict):
        told_by_call(rack, victim.allocation_uuid)
    assert rack.count(SliceState.ONLINE) == 2


def test_a_hosts_own_release_is_settled_at_once(rack: Rack, victim: Grant) -> None:
    """By its call: nobody waits for a heartbeat."""
    rack.release(victim.allocation_uuid)
    rack.sanitizer.drain()
    assert rack.count(SliceState.FREE) == 8


def test_releases_that_wait_for_the_same_host_share_its_answer(rack: Rack) -> None:
    """A host whose guests all end at once is not asked once for each: its first answer may tell of all of them."""
    first, second = (rack.online("h1", slices=1).allocation_uuid for _ in range(2))
    agent, asked, waiting = rack.agents["h1"], [], []
    honest = agent.report

    def slow() -> Report:
        asked.append(agent.host)
        if len(asked) == 1:
            agent.let_go(second)
            waiting.append(threading.Thread(target=told_by_call, args=(rack, second)))
            waiting[0].start()
        return honest()

    agent.report = slow
    agent.let_go(first)
    told_by_call(rack, first)
    waiting[0].join(10.0)
    assert asked == ["h1"]
    rack.sanitizer.drain()
    assert rack.count(SliceState.FREE) == 8


def test_what_a_process_maps_is_not_zeroed(rack: Rack, victim: Grant, guest: mmap.mmap) -> None:
    """However the ledger came to it: the emulated device looks, and the slice waits until nobody maps it."""
    rack.ledger.slices.release(str(uuid4()), victim.allocation_uuid, "h1")
    rack.sanitizer.drain()
    assert guest[: len(SECRET)] == SECRET
    assert (rack.count(SliceState.SANITIZING), rack.count(SliceState.FREE)) == (1, 7)
    guest.close()
    rack.sanitizer.drain()
    assert rack.count(SliceState.FREE) == 8
