"""A real guest (QEMU, TCG) that two agents have moved between their hosts, as libvirt and nova-compute do it."""

import json
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from pondstack_agent.data_plane.guest_memory import find_memory
from pondstack_agent.data_plane.views import LeaseState
from pondstack_agent.qemu.monitor import Monitor, MonitorError
from pondstack_rack.wait import wait_until
from rdma.tests.data_plane.processes import DataPlane
from rdma.tests.data_plane.qemu_guest import QemuGuest, initramfs

from ..lending.conftest import DEADLINE_SECONDS
from . import real_plane
from .conftest import BORROWER, CONSUMER, Rack, RemoteHost

pytestmark = pytest.mark.timeout(600)

OTHER = "host8"
RAM_MIB, WORDS_MIB, LOCAL_MIB = 160, 64, 48
REMOTE_MIB = RAM_MIB - LOCAL_MIB
SIZES = {"memory_mib": RAM_MIB, "local_mib": LOCAL_MIB}
OUTSIDE_BYTES = 8 << 20
"""What QEMU's stream has at most: devices, and blocks that are not the guest's node (ROMs, tables)."""
Start = Callable[..., QemuGuest]


@pytest.fixture
def planes(rack: Rack, programs: tuple[Path, Path]) -> Iterator[dict[str, DataPlane]]:
    """The data planes of two hosts."""
    made = {}
    for name in (BORROWER, OTHER):
        (rack.root / "planes").mkdir(exist_ok=True)
        made[name] = DataPlane(programs[0], rack.root / "planes" / name)
        made[name].large_files = True
        made[name].start()
        made[name].await_ready()
    yield made
    for plane in made.values():
        plane.stop()


@pytest.fixture
def hosts(rack: Rack, planes: dict[str, DataPlane]) -> tuple[RemoteHost, RemoteHost]:
    """Source and destination; others lend to both."""
    for name in ("host1", "host2"):
        rack.lend(name, REMOTE_MIB)
    made = rack[BORROWER], rack[OTHER]
    for host in made:
        host.conf.set_override("mirror_mib", RAM_MIB, group="data_plane")
        host.conf.set_override("handover_address", "127.0.0.1", group="data_plane")
        name = host.conf.host
        real_plane.use(host, rack, planes[name].folder, mirrors=rack.root / f"mirrors-{name}")
    return made


@pytest.fixture
def start(rack: Rack, tmp_path: Path) -> Iterator[Start]:
    """Start a guest on a host, as libvirt does."""
    image, made = initramfs(tmp_path), []

    def begin(host: str, *more: str) -> QemuGuest:
        head = (sys.executable, "-m", "pondstack_agent.qemu.wrapper")
        options = ("--state-dir", str(rack.root / host), "--host", host, "--")
        qmp = ("-qmp", f"unix:{tmp_path / host}.qmp,server=on,wait=off", "-uuid", CONSUMER)
        made.append(QemuGuest(image, WORDS_MIB, RAM_MIB, program=(*head, *options), more=(*qmp, *more)))
        return made[-1]

    yield begin
    for each in made:
        each.kill()


@contextmanager
def monitor(path: Path) -> Iterator[Monitor]:
    """As libvirt has one of each QEMU."""
    assert wait_until(path.exists, DEADLINE_SECONDS, 0.01)
    with socket.socket(socket.AF_UNIX) as link:
        assert wait_until(lambda: link.connect_ex(str(path)) == 0, DEADLINE_SECONDS, 0.01)
        with Monitor(link, DEADLINE_SECONDS) as monitor:
            yield monitor


def prepare(source: RemoteHost, destination: RemoteHost, *, by_reference: bool) -> None:
    """As nova-compute of the destination does, before libvirt begins; one of a former release says no source."""
    destination.alloc(REMOTE_MIB, operation="alloc2", source=BORROWER if by_reference else "")
    public = destination.calls.expect_guest(consumer_uuid=CONSUMER)
    origin = source.calls.hand_over(consumer_uuid=CONSUMER, public=public)
    destination.calls.receive_guest(consumer_uuid=CONSUMER, disk_mib=0, **SIZES, origin=origin)


def served(host: RemoteHost, guest: QemuGuest) -> None:
    """Have a guest served on a host, of which the other host's process is out of sight."""
    plane, _, started = host.real
    host.real = plane, lambda uuid, pid=None: find_memory(uuid, pid=pid or guest.pid), started
    host.restart()


def extension(host: RemoteHost) -> dict:
    return host.view()["extension"]


def loads(host: RemoteHost) -> float:
    return extension(host)["counters"].get("loads", 0)


@pytest.fixture
def guest(hosts: tuple[RemoteHost, RemoteHost], start: Start) -> QemuGuest:
    """A guest that works at the source, with a part of its memory elsewhere."""
    made = start(BORROWER)
    made.await_memory()
    served(hosts[0], made)
    hosts[0].alloc(REMOTE_MIB)
    hosts[0].calls.extend(consumer_uuid=CONSUMER, **SIZES)
    made.await_ready()
    made.begin()
    assert wait_until(lambda: loads(hosts[0]) > 500, DEADLINE_SECONDS), extension(hosts[0])
    return made


def only_mirrored(source: RemoteHost) -> int:
    """Return how many pages of a guest that leaves no lender has: they left local memory before its buffers came."""
    plane = source.real[0]
    assert wait_until(lambda: plane.view(CONSUMER).handover.state == "frozen", DEADLINE_SECONDS)
    seen = plane.view(CONSUMER)
    return seen.evicted_pages - sum(lease.used for lease in seen.leases if lease.state is LeaseState.ACTIVE)


def owned(rack: Rack, host: str) -> set[tuple[str, int]]:
    """Return the buffers that a host has, by the ledger."""
    return {(item.lender, item.index) for item in rack.controller.ledger.buffers.find() if item.host == host}


@pytest.mark.parametrize("by_reference", [True, False], ids=["reference", "value"])
def test_a_guest_moves(
    *,
    by_reference: bool,
    rack: Rack,
    hosts: tuple[RemoteHost, RemoteHost],
    guest: QemuGuest,
    start: Start,
    tmp_path: Path,
) -> None:
    """While it works. QEMU's stream has none of its memory; the source's process ends without anybody's order.

    By reference it keeps its buffers, no page of which is copied.
    """
    source, destination = hosts
    rack.turn()  # all are heard of
    before = owned(rack, BORROWER)
    prepare(source, destination, by_reference=by_reference)
    assert owned(rack, BORROWER) == before, "until the guest has moved"
    comes = start(OTHER, "-S", "-incoming", "defer")
    served_there = partial(extension, destination)
    assert wait_until(lambda: served_there() is not None, DEADLINE_SECONDS)
    stream = f"unix:{tmp_path / 'stream'}"
    with monitor(tmp_path / f"{OTHER}.qmp") as there, monitor(tmp_path / f"{BORROWER}.qmp") as here:
        assert wait_until(lambda: ignores(there), DEADLINE_SECONDS)
        here.ignore_shared(on=True)
        there.ask("migrate-incoming", uri=stream)
        here.ask("migrate", uri=stream)
        assert wait_until(here.has_come, DEADLINE_SECONDS, 0.02)
        assert here.ask("query-migrate")["ram"]["transferred"] < OUTSIDE_BYTES
        there.ask("cont")
        alone = only_mirrored(source)
        guest.kill()
        assert wait_until(lambda: not ignores(there), DEADLINE_SECONDS), "what is saved there has all of its memory"
    assert source.release()
    assert wait_until(lambda: loads(destination) > 500, DEADLINE_SECONDS)
    rack.turn_until(lambda: source.calls.get_remote(consumer_uuid=CONSUMER) is None, rounds=200)
    rack.turn_until(lambda: extension(destination)["handover"] is None, rounds=200)
    rack.turn(2)
    assert extension(destination)["leases"] == {"active": REMOTE_MIB}
    counted = extension(destination)["store"]
    if by_reference:
        assert counted["handed_copied"] == counted["corrupt"] == 0
        assert counted["copied_stored"] <= alone, "what no lender has"
        assert counted["handed"] > 1000
        assert owned(rack, OTHER) == before
        assert not any(item.shared or item.heir for item in rack.controller.ledger.buffers.find()), "one key of each"
    else:
        assert counted["handed"] == 0
        assert counted["copied_stored"] > 1000
        assert owned(rack, OTHER).isdisjoint(before)
    comes.stop()
    assert destination.calls.unextend(consumer_uuid=CONSUMER)
    counts = comes.finish()
    assert counts["wrong"] == 0
    assert counts["accesses"] > 1000
    assert destination.release()
    rack.turn(3)
    assert rack.free()


def ignores(monitor: Monitor) -> bool:
    """Whether a QEMU leaves shared files out."""
    found = {item["capability"]: item["state"] for item in monitor.ask("query-migrate-capabilities")}
    return bool(found["x-ignore-shared"])


def test_a_destination_that_is_not_ready_takes_nothing_in(
    hosts: tuple[RemoteHost, RemoteHost], guest: QemuGuest, start: Start, tmp_path: Path
) -> None:
    """As where its agent has died: QEMU refuses, and the guest goes on at the source, which takes it back."""
    source, _ = hosts
    source.calls.hand_over(consumer_uuid=CONSUMER, public="01" * 32)
    start(OTHER, "-S", "-incoming", "defer")
    stream = f"unix:{tmp_path / 'stream'}"
    with monitor(tmp_path / f"{OTHER}.qmp") as there, monitor(tmp_path / f"{BORROWER}.qmp") as here:
        here.ignore_shared(on=True)
        there.ask("migrate-incoming", uri=stream)
        here.ask("migrate", uri=stream)
        with pytest.raises(MonitorError, match="failed"):
            wait_until(here.has_come, DEADLINE_SECONDS, 0.02)
        here.ignore_shared(on=False)
    assert source.calls.take_back(consumer_uuid=CONSUMER)
    assert not source.calls.take_back(consumer_uuid=CONSUMER)
    assert wait_until(lambda: loads(source) > 500, DEADLINE_SECONDS)
    guest.stop()
    assert source.calls.unextend(consumer_uuid=CONSUMER)
    assert guest.finish()["wrong"] == 0
    assert json.dumps(source.view())
