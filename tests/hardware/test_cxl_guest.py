"""Guests on CXL memory, moved to local memory while they verify what is in it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pondstack.devices import pool_uuid
from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.errors import InUse, NoLocalRoom
from pondstack.domain.model import Extent, indexes_of
from pondstack.rpc.wire import Grant
from pondstack_rack.wait import Deadline

from . import inner_guest
from .channel import DEADLINE_SECONDS
from .conftest import Hardware
from .cxl_rack import PYTHON, SERIAL, TABLE, make_device
from .figures import Figures
from .host import EmulatedHost
from .machine import Machine

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(900)]

HOST, GUEST = "host1", "/mnt/guest"
SLICES, SLICE_MIB, CHUNK_MIB = 4, 128, 8
STEPS = ("record", "some moved", "cgroup", "mitigated", "release")
"""Where the agent is killed; "some moved" is a chunk half-way."""
TIMES: dict[str, float] = {}


class Bed:
    """A host with a device, and the agent in it."""

    def __init__(self, host: EmulatedHost, folder: Path) -> None:
        self.host, self.device = host, EmulatedDevice(folder)
        self.agent: Any = host.remote(
            "tests.hardware.guest.mitigated:Agent", host=HOST, serial=SERIAL, table=TABLE, chunk_mib=CHUNK_MIB
        )

    def grant(self, name: str, first: int, count: int) -> Grant:
        """Have the device let the host use slices for guest `name`."""
        tag, extents = f"allocation-{name}", (Extent(first, count),)
        self.device.grant(HOST, extents, tag=tag, epoch=1)
        return Grant(tag, name, HOST, pool_uuid(SERIAL), "pool0", {}, SLICE_MIB, extents, 1)

    def take_back(self, grant: Grant) -> None:
        """What the controller does at a release: revoke, sanitise."""
        for index in indexes_of(grant.extents):
            self.device.revoke([index], tag=grant.allocation_uuid, epoch=1)
            self.device.sanitize(index, epoch=1)

    def until(self, what: Callable[[], Any]) -> Any:
        """Wait until something is so."""
        deadline = Deadline(DEADLINE_SECONDS)
        while not (found := what()):
            assert not deadline.over
            deadline.pause()
        return found

    def ended(self, consumer: str) -> Any:
        """Wait until a mitigation has ended."""
        return self.until(lambda: (now := self.agent.progress(consumer)).state != "moving" and now)


@pytest.fixture(scope="module")
def bed(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """One host."""
    folder = tmp_path_factory.mktemp("mitigation")
    make_device(folder / "device", SLICES, SLICE_MIB)
    inner_guest.build(hardware.files, folder / "guest")
    shares = {TABLE: folder / "device", GUEST: folder / "guest"}
    with hardware.hosts(Machine(HOST, (folder / "device/memory",), shares=shares)) as [host]:
        yield Bed(host, folder / "device")


def test_a_znuma_guest_is_moved_to_local_memory(bed: Bed, figures: Figures) -> None:
    agent, name = bed.agent, "2b3f44a4-55a1-4c33-8d5f-1d2a7f3c0001"
    grant = bed.grant(name, 0, 2)
    [backing] = agent.attach(grant).backings
    node, distance = backing.host_node, backing.distance
    argv = inner_guest.command(GUEST, name, pool_mib=backing.size_mib, node=node, distance=distance)
    begun = time.monotonic()
    guest = inner_guest.start_in_cgroup(bed.host, "znuma", argv)
    try:
        boot = guest.wait_for("pass 1 wrong 0 ")
        figures.add("zNUMA guest in an emulated host, to its first look", time.monotonic() - begun, "s")
        assert "pool node: cpulist=[]" in boot
        assert f"pool node: distance=[{distance} 10]" in boot
        pages, bound = agent.pages(name, node)
        assert bound
        assert pages >= 64 << 8  # the 64 MiB that the program fills

        with pytest.raises(InUse):
            agent.detach(name)
        agent.restart(10**6)
        with pytest.raises(NoLocalRoom, match="migrate the guest"):
            agent.mitigate("too-big", name)
        assert agent.progress(name) is None
        agent.restart()

        agent.mitigate("aborted", name, hold=True)
        assert agent.held()
        agent.abort(name)
        half = agent.progress(name)
        assert 0 < half.pages_moved < half.pages_total
        agent.go_on()
        assert bed.ended(name).state == "aborted"
        left, bound = agent.pages(name, node)
        assert bound
        assert 0 < left < pages
        assert agent.attached() == {grant.allocation_uuid: True}
        inner_guest.wait_for_passes(guest)

        assert agent.mitigate_killed("killed", name, "cgroup")  # all has moved, and nothing says so yet
        agent.restart()
        assert agent.progress(name).state == "failed"
        assert agent.pages(name, node)[1]
        assert agent.attached() == {grant.allocation_uuid: True}

        agent.mitigate("moved", name)
        done = bed.ended(name)
        assert (done.state, done.reason) == ("mitigated", "")
        figures.add("zNUMA guest, last mitigation", done.seconds, "s")
        bed.until(lambda: agent.released() == [grant.allocation_uuid])
        assert agent.attached() == {}
        assert agent.pages(name, node) == (0, False)
        bed.take_back(grant)
        assert bed.device.permissions() == {}

        guest.write("g")
        looks = inner_guest.wait_for_passes(guest, after="grown")
        assert looks[-1][1] > looks[0][1]
        assert sum(wrong for wrong, _ in looks) == 0
        assert agent.pages(name, node) == (0, False)
        figures.add("zNUMA guest, words verified", sum(words for _, words in looks), "words", "0 wrong")
    finally:
        inner_guest.end(guest)


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step(bed: Bed, step: str) -> None:
    """The next life finds a guest of the pool, or finishes; slices with pages on them never go."""
    agent, name = bed.agent, f"killed-at-{step.replace(' ', '-')}"
    grant = bed.grant(name, 0, 1)
    node = agent.attach(grant).backings[0].host_node
    argv = [PYTHON, "-m", "tests.hardware.guest.verifier", "-uuid", name, str(node), "48"]
    guest = inner_guest.start_in_cgroup(bed.host, name, argv)
    try:
        guest.wait_for("filled")
        assert agent.mitigate_killed("first", name, step)
        agent.restart()
        state = agent.progress(name).state if step != "record" else "nothing"
        expected = {"record": "nothing", "mitigated": "mitigated", "release": "mitigated"}
        assert state == expected.get(step, "failed")
        if state != "mitigated":
            assert agent.attached() == {grant.allocation_uuid: True}
            assert agent.pages(name, node)[1]
            agent.mitigate("second", name)
            assert bed.ended(name).state == "mitigated"
        bed.until(lambda: grant.allocation_uuid in agent.released())
        assert agent.attached() == {}
        bed.take_back(grant)
        guest.write(close=True)
        assert "wrong 0 of" in guest.wait_for(" looks")
        assert agent.pages(name, node) == (0, False)
    finally:
        inner_guest.end(guest)


def test_pages_of_a_guest_that_stays_come_back(bed: Bed, figures: Figures) -> None:
    """Two guests leave; the kernel moves what the third has in their slices to local memory, and the agent back."""
    agent, name = bed.agent, "stays"
    first, second, stays = (bed.grant(consumer, index, 1) for index, consumer in enumerate(("first", "second", name)))
    node = agent.attach(first).backings[0].host_node
    argv = [PYTHON, "-m", "tests.hardware.guest.verifier", "-uuid", name, str(node), "16"]
    guest = inner_guest.start_in_cgroup(bed.host, name, argv)
    try:
        guest.wait_for("filled")  # only the first slice is there
        agent.attach(second)
        agent.attach(stays)
        agent.detach("first")
        bed.until(lambda: first.allocation_uuid in agent.released())
        moved_away = agent.elsewhere(name, node)
        assert moved_away > 0
        agent.tidy()
        bed.until(lambda: agent.elsewhere(name, node) == 0)
        pages, _ = agent.pages(name, node)
        assert pages >= 16 << 8
        agent.detach("second")
        bed.until(lambda: second.allocation_uuid in agent.released())
        agent.restart()  # as after a kill before anything was moved back
        agent.tidy()
        bed.until(lambda: agent.elsewhere(name, node) == 0)
        assert agent.pages(name, node)[0] >= pages
        guest.write(close=True)
        assert "wrong 0 of" in guest.wait_for(" looks")
        figures.add("pages of a guest that stays: moved away by the kernel, back by the agent", moved_away, "pages")
    finally:
        inner_guest.end(guest)
    agent.detach(name)
    bed.until(lambda: agent.attached() == {})
    for grant in (first, second, stays):
        bed.take_back(grant)
