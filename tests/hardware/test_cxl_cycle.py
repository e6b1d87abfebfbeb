"""Slices come online, go offline and return in any order while the driver is killed: none is lost, none leaks.

Environment: CYCLES (operations; 20, or 200 by night), PONDSTACK_SEED. A failure prints the command that repeats it.
"""

import os
import random
from collections.abc import Iterator

import pytest

from pondstack.devices import pool_uuid
from pondstack.domain.errors import Conflict, DeviceFailed
from pondstack.domain.model import Extent, extents_of, indexes_of
from pondstack.rpc.wire import Grant
from tests.fixtures.seeds import VARIABLE, by_night, seed

from .conftest import Hardware
from .cxl_rack import PYTHON, SERIAL, CxlRack, cxl_rack
from .figures import Figures

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(1200)]

SLICES, SLICE_MIB = 8, 128
HOST = "host1"
CYCLES = int(os.environ.get("CYCLES", by_night(200, 20)))
KILLED_SHARE = 0.4
"""So many operations are killed at a step, if they have so many steps."""
STEPS = {"attach": 9, "detach": 6}
"""Changes of the kernel and the records in an operation on one slice; more slices have more."""


NODES_GONE = 5
"""How often the last memory of the pool's node goes offline beside a reader of the memory tiers."""


@pytest.fixture(scope="module")
def rack(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CxlRack]:
    """One host with one device."""
    folder = tmp_path_factory.mktemp("pool") / "device"
    with cxl_rack(hardware, folder, (HOST,), SLICES, SLICE_MIB) as rack:
        yield rack


class History:
    """A seeded run against a model: the allocations that must be attached, and nothing else."""

    def __init__(self, rack: CxlRack, seed: int) -> None:
        self.rack, self.random = rack, random.Random(seed)
        self.driver = rack.open(HOST)
        self.held: dict[str, Grant] = {}
        self.kills: dict[str, int] = {}
        self.number = 0

    def step(self) -> None:
        """Do one operation, perhaps killed and then repeated or given up, and compare."""
        used = {index for grant in self.held.values() for index in indexes_of(grant.extents)}
        free = sorted(set(range(SLICES)) - used)
        if free and (not self.held or self.random.random() < 0.5):
            self._attach(self._granted(self.random.sample(free, self.random.randint(1, min(3, len(free))))))
        else:
            self._detach(self.held[self.random.choice(sorted(self.held))])
        self.compare()

    def compare(self) -> None:
        """Compare driver and kernel with the model."""
        found = {item.allocation_uuid: item.extents for item in self.driver.attached()}
        assert found == {tag: grant.extents for tag, grant in self.held.items()}
        kernel = self.rack.remote(HOST).audit()
        size = SLICE_MIB << 20
        blocks = size // kernel["block"]
        wanted = sorted(index for grant in self.held.values() for index in indexes_of(grant.extents))
        starts = [kernel["start"] + index * size for index in wanted]
        assert sorted(kernel["slices"]) == [[start, start + size - 1, "kmem", blocks, blocks] for start in starts]
        assert kernel["available"] == kernel["size"] - size * len(wanted)
        # A kill leaves a device without a range, and the next slice takes it: there are never more than slices.
        assert len(kernel["slices"]) + kernel["empty"] <= SLICES

    def _granted(self, indexes: list[int]) -> Grant:
        self.number += 1
        tag, extents = f"allocation-{self.number}", extents_of(indexes)
        extents = tuple(self.random.sample(extents, len(extents)))
        self.rack.device.grant(HOST, extents, tag=tag, epoch=1)
        return Grant(tag, f"guest-of-{tag}", HOST, pool_uuid(SERIAL), "pool0", {}, SLICE_MIB, extents, 1)

    def _attach(self, grant: Grant) -> None:
        if self._do("attach", grant, len(indexes_of(grant.extents))) or self.random.random() < 0.5:
            sizes = [backing.size_mib for backing in self.driver.attach(grant)]
            assert sizes == [extent.count * SLICE_MIB for extent in grant.extents]
            self.held[grant.allocation_uuid] = grant
        else:  # its caller gives up
            self.driver.detach(grant.allocation_uuid)
            self._returned(grant)

    def _detach(self, grant: Grant) -> None:
        if not self._do("detach", grant.allocation_uuid, len(indexes_of(grant.extents))):
            self.driver.detach(grant.allocation_uuid)
        del self.held[grant.allocation_uuid]
        self._returned(grant)

    def _returned(self, grant: Grant) -> None:
        for index in indexes_of(grant.extents):
            self.rack.device.revoke([index], tag=grant.allocation_uuid, epoch=1)
            self.rack.device.sanitize(index, epoch=1)

    def _do(self, verb: str, argument: object, slices: int) -> bool:
        """Call the driver; True when it was not killed on the way."""
        if self.random.random() >= KILLED_SHARE:
            getattr(self.driver, verb)(argument)
            return True
        step = self.random.randint(1, STEPS[verb] * slices)
        ended = bool(self.rack.remote(HOST).call_killed(verb, [argument], step))
        if not ended:
            self.kills[verb] = self.kills.get(verb, 0) + 1
        return ended


def test_no_slice_is_lost_or_leaks(rack: CxlRack, figures: Figures) -> None:
    chosen = seed(60)
    print(
        f"repeat: {VARIABLE}={chosen} CYCLES={CYCLES} make hardware-cxl PYTEST_ARGS='-k test_no_slice_is_lost_or_leaks'"
    )
    history = History(rack, chosen)
    for _ in range(CYCLES):
        history.step()
    for grant in list(history.held.values()):
        history._detach(grant)
    history.compare()
    for verb, count in sorted(history.kills.items()):
        figures.add(f"kills in {CYCLES} operations, {verb}", count, "kills")
    assert CYCLES < 50 or all(history.kills.get(verb) for verb in STEPS), history.kills


@pytest.fixture
def grants(rack: CxlRack) -> Iterator[list[Grant]]:
    """Two allocations of one slice each, granted."""
    made = []
    for tag, index in (("first", 1), ("second", 5)):
        extents = (Extent(index, 1),)
        rack.device.grant(HOST, extents, tag=tag, epoch=1)
        made.append(Grant(tag, f"guest-of-{tag}", HOST, pool_uuid(SERIAL), "pool0", {}, SLICE_MIB, extents, 1))
    yield made
    rack.clean()


def test_pages_of_others_are_moved(rack: CxlRack, grants: list[Grant]) -> None:
    """A process that is not the slice's guest has memory there: it goes on, wherever the kernel has moved that."""
    driver = rack.open(HOST)
    [backing] = driver.attach(grants[0])
    with rack.guest(grants[1], backing, "bytes in the first slice"):
        driver.attach(grants[1])
        assert driver.detach("first")
        assert [item.allocation_uuid for item in driver.attached()] == ["second"]


def test_pinned_memory_is_stuck_until_it_is_let_go(rack: CxlRack, grants: list[Grant]) -> None:
    rack.remote(HOST).limit(2, 2.0)
    driver = rack.open(HOST)
    [backing] = driver.attach(grants[0])
    command = [PYTHON, "-m", "tests.hardware.guest.pin", str(backing.host_node)]
    pinning = rack.hosts[HOST].start(command, env={"PYTHONPATH": "/opt/code"})
    pinning.wait_for("pinned")
    with pytest.raises(DeviceFailed, match=r"allocation first does not go offline: 1 of 1 .* after 2 attempts"):
        driver.detach("first")
    assert [item.allocation_uuid for item in driver.attached()] == ["first"]
    assert "pinned memory of VFIO or RDMA" in rack.open(HOST).stuck()["first"]
    with pytest.raises(Conflict, match="going offline"):
        driver.attach(grants[0])
    pinning.write(close=True)
    pinning.wait()
    assert driver.detach("first")
    assert driver.stuck() == {}
    rack.remote(HOST).limit(3, 60.0)


def test_a_node_goes_while_its_tier_is_read(rack: CxlRack, grants: list[Grant]) -> None:
    """Without the two kept apart, the kernel hangs here at the first or second time, until it is booted again."""
    driver = rack.open(HOST)
    for _ in range(NODES_GONE):
        assert [backing.host_node for backing in driver.attach(grants[0])] == [1]
        assert rack.remote(HOST).detach_beside_reader(grants[0].allocation_uuid) > 0
    assert driver.attached() == ()
