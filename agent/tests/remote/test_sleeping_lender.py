"""A lender that slept before anything of it was borrowed: agents, ledger, data plane and lenders are the real ones.

It "sleeps" as a process all of whose threads are stopped; only its memory is there.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pondstack_agent.data_plane.guest_memory import GuestMemory, start_of
from pondstack_rack.wait import wait_until
from rdma.tests.data_plane.processes import MEMORY, REST_US, DataPlane, StandinGuest

from ..lending.conftest import DEADLINE_SECONDS
from . import real_plane
from .conftest import BORROWER, CONSUMER, Rack, RemoteHost

MIB, LOCAL_MIB = 8, 3
REMOTE_MIB = 6
"""More than leaves: each page that does has room at the lender."""


@pytest.fixture
def plane(rack: Rack, programs: tuple[Path, Path]) -> Iterator[DataPlane]:
    made = DataPlane(programs[0], rack.root / "plane")
    made.start()
    made.await_ready()
    yield made
    made.stop()


@pytest.fixture
def boot(programs: tuple[Path, Path]) -> Iterator[Callable[[], StandinGuest]]:
    """Start a guest; it ends with the test."""
    started: list[StandinGuest] = []

    def start() -> StandinGuest:
        started.append(StandinGuest(programs[1], MIB, rest_us=REST_US))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def extension(host: RemoteHost) -> dict[str, Any]:
    found: dict[str, Any] = host.view()["extension"]
    return found


def await_store(host: RemoteHost, name: str, more: int) -> None:
    """Wait until a counter of the store has grown by so much."""
    before = extension(host)["store"].get(name, 0)
    assert wait_until(lambda: extension(host)["store"].get(name, 0) >= before + more, DEADLINE_SECONDS), extension(host)


def placed(host: RemoteHost, lender: RemoteHost) -> bool:
    """Have both go on; whether all that is borrowed is used."""
    lender.beat()
    host.beat()
    return bool(extension(host)["leases"] == {"active": REMOTE_MIB})


def mirror_reads_of(host: RemoteHost, lender_reads: int) -> int:
    """Return how many pages come from the mirror while so many come from lenders."""
    before = extension(host)["store"]["mirror_reads"]
    await_store(host, "lender_reads", lender_reads)
    return int(extension(host)["store"]["mirror_reads"] - before)


def test_it_serves_and_then_the_mirror_does(rack: Rack, plane: DataPlane, boot: Callable[[], StandinGuest]) -> None:
    """Frozen before the first byte is borrowed, it serves the guest's pages; kill -9, and the mirror serves them."""
    host = rack.borrower
    guests: list[StandinGuest] = []
    host.linked = None
    real_plane.use(
        host,
        rack,
        plane.folder,
        lambda _guest: GuestMemory(guests[0].pid, start_of(guests[0].pid) or 0, MEMORY, MIB),
    )
    rack.sleep("host1", REMOTE_MIB)
    rack.turn_until(lambda: host.borrower.report()["links"])
    ((lender, life),) = host.borrower.report()["links"]
    rack.turn_until(lambda: len(rack.controller.ledger.escrow.of_lender(life)) == REMOTE_MIB)
    assert lender == "host1"

    with rack["host1"].frozen():
        guests.append(boot())
        assert host.alloc(REMOTE_MIB)["borrowed_mib"] == REMOTE_MIB
        view = host.calls.extend(consumer_uuid=CONSUMER, memory_mib=MIB, local_mib=LOCAL_MIB)
        assert view["extension"]["leases"] == {"active": REMOTE_MIB}
        # What left before the lender was told of comes back from the mirror once.
        assert wait_until(lambda: mirror_reads_of(host, 1000) == 0, DEADLINE_SECONDS), extension(host)
        assert extension(host)["store"]["corrupt"] == 0

        plane.kill()
        plane.start()
        plane.await_ready()
        await_store(host, "mirror_reads", 1000)
        assert host.borrower.report()["links"] == []
        host.beat()  # the lender is out of reach: what is on it is to be placed anew
        assert extension(host)["leases"] == {}
        assert {item.promised_to for item in rack.controller.ledger.buffers.find("host1")} == {BORROWER}
        rack.lend("host2", REMOTE_MIB)
        assert wait_until(lambda: placed(host, rack["host2"]), DEADLINE_SECONDS), extension(host)
        await_store(host, "lender_reads", 500)
        assert extension(host)["store"]["corrupt"] == 0
    rack["host1"].lend(REMOTE_MIB, operation="awake")
    rack.turn(3)
    assert host.calls.unextend(consumer_uuid=CONSUMER)
    assert guests[0].finish()["wrong"] == 0
    assert host.release()
    rack.turn(3)
    assert rack.free()
    assert not any(item.promised_to or item.escrowed for item in rack.controller.ledger.buffers.find())
