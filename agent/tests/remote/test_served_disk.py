"""A swap disk of the real data plane, by its agent over shm lenders, while agent, data plane and lenders are killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pondstack_rack.wait import wait_until
from rdma.tests.data_plane.exported.client import Nbd, connect
from rdma.tests.data_plane.processes import BlockPlane

from ..lending.conftest import DEADLINE_SECONDS
from ..pagestore.conftest import content
from . import real_plane
from .conftest import Rack, RemoteHost

pytestmark = pytest.mark.timeout(600)

MIB, PAGE = 4, 4096
DEFAULT = ""
"""The export without a name, which QEMU asks for."""
PAGES = range(0, MIB * 256, 3)


@pytest.fixture
def plane(rack: Rack, programs: tuple[Path, Path]) -> Iterator[BlockPlane]:
    """The host's data plane."""
    made = BlockPlane(programs[0], rack.root / "plane")
    made.start()
    made.await_ready()
    yield made
    made.close()


@pytest.fixture
def host(rack: Rack, plane: BlockPlane) -> RemoteHost:
    """The borrower, with that data plane; two others lend."""
    for name in ("host1", "host2"):
        rack.lend(name, MIB)
    real_plane.use(rack.borrower, rack, plane.folder)
    return rack.borrower


def fill(link: Nbd, version: int) -> None:
    for page in PAGES:
        link.write(page * PAGE, content(page, version))


def check(link: Nbd, version: int) -> None:
    assert [page for page in PAGES if link.read(page * PAGE, PAGE) != content(page, version)] == []


def leased(host: RemoteHost) -> int:
    return host.swap()["disk"]["leases"].get("active", 0)


def test_no_page_is_wrong(rack: Rack, host: RemoteHost, plane: BlockPlane) -> None:
    path = Path(host.attach_swap(MIB)["socket"])
    with connect(path, DEFAULT) as link:
        assert (link.size, leased(host)) == (MIB * 2**20, MIB)
        fill(link, 1)
        check(link, 1)
        assert host.swap()["disk"]["store"]["lender_reads"] > 0
        plane.restart()
        host.restart()
    rack.turn_until(lambda: leased(host) == MIB)
    with connect(path, DEFAULT) as link:
        check(link, 1)
        # A lender takes its memory back, then another one is killed.
        rack.reclaim("host1", MIB)
        rack.turn_until(lambda: rack.done("host1") and leased(host) == MIB)
        fill(link, 2)
        rack["host2"].kill()
        check(link, 2)
        rack.lend("host3", MIB)
        rack.turn_until(lambda: leased(host) == MIB, rounds=60)
        check(link, 2)
    assert wait_until(lambda: not host.swap()["disk"]["connected"], DEADLINE_SECONDS)
    assert host.release_swap()
    rack.turn(3)
    assert rack.free()
    assert (list((rack.root / "mirrors").iterdir()), path.exists(), plane.keepers()) == ([], False, [])
