"""A real guest (QEMU, TCG), extended by its agent over shm lenders, while agent and data plane are killed together."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pondstack_rack.wait import Deadline, wait_until
from rdma.tests.data_plane.processes import DataPlane
from rdma.tests.data_plane.qemu_guest import QemuGuest, initramfs

from ..lending.conftest import DEADLINE_SECONDS
from . import real_plane
from .conftest import CONSUMER, Rack, RemoteHost

pytestmark = pytest.mark.timeout(600)

RAM_MIB, WORDS_MIB, LOCAL_MIB = 160, 64, 48
REMOTE_MIB = RAM_MIB - LOCAL_MIB


@pytest.fixture
def plane(rack: Rack, programs: tuple[Path, Path]) -> Iterator[DataPlane]:
    """The host's data plane; its mirrors are as large as the guest."""
    made = DataPlane(programs[0], rack.root / "plane")
    made.large_files = True
    made.start()
    made.await_ready()
    yield made
    made.stop()


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[QemuGuest]:
    """A guest that says which instance it is, as libvirt has QEMU say it."""
    made = QemuGuest(initramfs(tmp_path), WORDS_MIB, RAM_MIB, more=("-uuid", CONSUMER))
    yield made
    made.kill()


@pytest.fixture
def host(rack: Rack, plane: DataPlane) -> RemoteHost:
    """The borrower, with that data plane; two others lend."""
    for name in ("host1", "host2"):
        rack.lend(name, REMOTE_MIB)
    rack.borrower.conf.set_override("mirror_mib", RAM_MIB, group="data_plane")
    real_plane.use(rack.borrower, rack, plane.folder)
    return rack.borrower


def extension(host: RemoteHost) -> dict:
    return host.view()["extension"]


def loads(host: RemoteHost) -> float:
    return extension(host)["counters"].get("loads", 0)


def test_no_word_is_wrong_while_agent_and_data_plane_are_killed(
    rack: Rack, host: RemoteHost, plane: DataPlane, guest: QemuGuest
) -> None:
    guest.await_memory()
    host.alloc(REMOTE_MIB)
    view = host.calls.extend(consumer_uuid=CONSUMER, memory_mib=RAM_MIB, local_mib=LOCAL_MIB)
    assert view["extension"]["leases"] == {"active": REMOTE_MIB}
    guest.await_ready()
    guest.begin()
    for _ in range(3):
        Deadline(0.0).pause(0.5)
        assert wait_until(lambda: loads(host) > 500, DEADLINE_SECONDS), extension(host)
        assert extension(host)["store"]["lender_reads"] > 0
        plane.kill()
        host.restart()
        assert extension(host)["state"] == "waiting"
        plane.start()
        plane.await_ready()
        rack.turn(2)
        assert extension(host)["leases"] == {"active": REMOTE_MIB}
    # A lender takes its memory back, the other one is killed.
    rack.reclaim("host1", REMOTE_MIB)
    rack.turn_until(lambda: rack.done("host1"))
    assert wait_until(lambda: loads(host) > 500, DEADLINE_SECONDS)
    rack["host2"].kill()
    rack.lend("host3", REMOTE_MIB)
    rack.turn_until(lambda: extension(host)["leases"] == {"active": REMOTE_MIB}, rounds=60)
    assert host.calls.get_mirror_room() == {"total_mib": RAM_MIB, "used_mib": RAM_MIB}
    guest.stop()
    assert host.calls.unextend(consumer_uuid=CONSUMER)
    counts = guest.finish()
    assert counts["wrong"] == 0
    assert counts["accesses"] > 1000
    assert host.release()
    rack.turn(3)
    assert rack.free()
    assert list((rack.root / "mirrors").iterdir()) == []
