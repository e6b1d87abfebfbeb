"""A swap disk of the real data plane, by its agent over shm lenders, while agent, data plane and lenders are killed.

No acknowledged page may be wrong or lost.
"""

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pondstack_rack.wait import wait_until
from rdma.tests.data_plane.exported.client import Nbd, NbdError, connect
from rdma.tests.data_plane.processes import BlockPlane

from ..lending.conftest import DEADLINE_SECONDS
from . import real_plane
from .conftest import PAGE, Killed, Rack, RemoteHost, content

pytestmark = pytest.mark.timeout(600)

MIB = 4
DEFAULT = ""
"""The export without a name, which QEMU asks for."""
ALL_PAGES = MIB * 256
PAGES = range(0, ALL_PAGES, 3)
LENDERS = ("host1", "host2", "host3")
SEED = int(os.environ.get("PONDSTACK_TEST_SEED", "8"))
ROUNDS = 8


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
    for each in rack.hosts.values():  # to begin a host may take longer than it may be silent
        each.beat()
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
        with rack["host1"].frozen():  # the data plane keeps its link; the agent would need the lender's CPU
            host.restart()
            before = host.swap()["disk"]["store"]["mirror_reads"]
            check(link, 1)
            assert host.swap()["disk"]["store"]["mirror_reads"] == before
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


class Load:
    """Writes and reads all the time, in a thread, and checks each page that it reads."""

    def __init__(self, path: Path, seed: str) -> None:
        self.path, self._dice = path, random.Random(seed)
        self.model: dict[int, bytes] = {}
        self.wrong: list[str] = []
        self.reads = self.writes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60.0)
        assert not self._thread.is_alive()

    def write(self, link: Nbd, page: int) -> None:
        data = content(page, self.writes)
        link.write(page * PAGE, data)
        self.model[page] = data
        self.writes += 1

    def check(self, link: Nbd, page: int) -> None:
        if link.read(page * PAGE, PAGE) != self.model.get(page, bytes(PAGE)):
            self.wrong.append(f"page {page} is not what was written last")
        self.reads += 1

    def check_all(self) -> None:
        with connect(self.path, DEFAULT) as link:
            for page in range(ALL_PAGES):
                self.check(link, page)

    def _run(self) -> None:
        try:
            with connect(self.path, DEFAULT) as link:
                while not self._stop.is_set():
                    do = self.write if self._dice.random() < 0.5 else self.check
                    do(link, self._dice.randrange(ALL_PAGES))
        except (NbdError, OSError) as error:
            self.wrong.append(f"an access failed: {error!r}")


def test_agents_lenders_and_data_planes_are_killed(rack: Rack, host: RemoteHost, plane: BlockPlane) -> None:
    dice = random.Random(SEED)
    rack.lend(LENDERS[-1], MIB)
    load = Load(Path(host.attach_swap(MIB)["socket"]), f"{SEED}")
    killed = {"agent": 0, "lender": 0, "data plane": 0}
    again = f"again: PONDSTACK_TEST_SEED={SEED} pytest {__file__}"
    for number in range(ROUNDS):
        load.start()
        what = tuple(killed)[number] if number < 3 else dice.choice(tuple(killed))
        name = dice.choice(LENDERS)
        killed[what] += 1
        try:
            host.fuse.left = dice.randrange(1, 30) if what == "agent" else 0
            if what == "lender":
                rack[name].kill()
            else:
                rack.reclaim(name, 1)
            rack.turn(2)
        except Killed:
            pass
        finally:
            host.fuse.left = 0
        if what == "agent":
            host.restart()
        rack.turn(2)
        load.stop()
        assert load.wrong == [], again
        if what == "data plane":
            _kill_plane(plane, load, dice)
        rack.turn_until(lambda lender=name: rack.done(lender))
        rack.lend(name, MIB)
        rack.turn_until(lambda: leased(host) == MIB, rounds=60)
    load.check_all()
    assert load.wrong == [], again
    assert host.swap()["disk"]["store"]["corrupt"] == 0, again
    print(f"seed {SEED}: {killed} killed under {load.writes} writes and {load.reads} reads; 0 wrong or lost")


def _kill_plane(plane: BlockPlane, load: Load, dice: random.Random) -> None:
    """What was answered is found, flushed or not."""
    with connect(load.path, DEFAULT) as link:
        for page in dice.sample(range(ALL_PAGES), 8):
            load.write(link, page)
        plane.restart()
    load.check_all()
