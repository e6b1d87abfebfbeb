"""Guests on CXL memory, moved to local memory while they verify what is in it; and what libvirt keeps of them."""

import time
from collections.abc import Iterator

import pytest

from pondstack.domain.errors import InUse, NoLocalRoom

from . import inner_guest
from .conftest import Hardware
from .cxl_rack import PYTHON
from .figures import Figures
from .libvirt_domain import Domain, libvirt
from .mitigation_bed import GUEST, Bed, mitigation_bed

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(900)]

STEPS = ("record", "some moved", "cgroup", "mitigated", "release")
"""Where the agent is killed; "some moved" is a chunk half-way."""
POOLED, LOCAL = {"0": ("strict", "0"), "1": ("preferred", "1")}, {"0": ("strict", "0"), "1": ("strict", "0")}


@pytest.fixture(scope="module")
def shared_bed(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """One host."""
    with mitigation_bed(hardware, tmp_path_factory.mktemp("mitigation")) as made:
        yield made


@pytest.fixture
def bed(shared_bed: Bed) -> Iterator[Bed]:
    """The host, without what a failed test has left in it."""
    yield shared_bed
    shared_bed.clear()


def test_a_znuma_guest_is_moved_to_local_memory(bed: Bed, figures: Figures) -> None:
    agent, name = bed.agent, "2b3f44a4-55a1-4c33-8d5f-1d2a7f3c0001"
    grant = bed.grant(name, 0, 2)
    [backing] = agent.attach(grant).backings
    node, distance = backing.host_node, backing.distance
    argv = inner_guest.command(GUEST, name, pool_mib=backing.size_mib, node=node, distance=distance)
    begun = time.monotonic()
    with inner_guest.running(bed.host, "znuma", argv, "pass 1 wrong 0 ") as guest:
        boot = guest.output()
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


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step(bed: Bed, step: str) -> None:
    """The next life finds a guest of the pool, or finishes; slices with pages on them never go."""
    agent, name = bed.agent, f"killed-at-{step.replace(' ', '-')}"
    grant = bed.grant(name, 0, 1)
    node = agent.attach(grant).backings[0].host_node
    argv = [PYTHON, "-m", "tests.hardware.guest.verifier", "-uuid", name, str(node), "48"]
    with inner_guest.running(bed.host, name, argv, "filled") as guest:
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


def test_pages_of_a_guest_that_stays_come_back(bed: Bed, figures: Figures) -> None:
    """Two guests leave; the kernel moves what the third has in their slices to local memory, and the agent back."""
    agent, name = bed.agent, "stays"
    first, second, stays = (bed.grant(consumer, index, 1) for index, consumer in enumerate(("first", "second", name)))
    node = agent.attach(first).backings[0].host_node
    argv = [PYTHON, "-m", "tests.hardware.guest.verifier", "-uuid", name, str(node), "16"]
    with inner_guest.running(bed.host, name, argv, "filled") as guest:  # only the first slice is there
        agent.attach(second)
        agent.attach(stays)
        agent.detach("first")
        bed.until(lambda: first.allocation_uuid in agent.released())
        moved_away = agent.elsewhere(name, node)
        assert moved_away > 0
        agent.tidy()
        # A page that is being moved is nowhere for the kernel's count: both must be so.
        bed.until(lambda: agent.elsewhere(name, node) == 0 and agent.pages(name, node)[0] >= 16 << 8)
        pages, _ = agent.pages(name, node)
        agent.detach("second")
        bed.until(lambda: second.allocation_uuid in agent.released())
        agent.restart()  # as after a kill before anything was moved back
        agent.tidy()
        bed.until(lambda: agent.elsewhere(name, node) == 0 and agent.pages(name, node)[0] >= pages)
        guest.write(close=True)
        assert "wrong 0 of" in guest.wait_for(" looks")
        figures.add("pages of a guest that stays: moved away by the kernel, back by the agent", moved_away, "pages")
    agent.detach(name)
    bed.until(lambda: agent.attached() == {})
    for grant in (first, second, stays):
        bed.take_back(grant)


@pytest.fixture(scope="module")
def _libvirt(shared_bed: Bed) -> Iterator[None]:
    """Have a libvirt run in the host."""
    with libvirt(shared_bed):
        yield


@pytest.fixture
def libvirt_bed(_libvirt: None, bed: Bed) -> Iterator[Bed]:
    """The same host with a libvirt, without what a failed test has left in it."""
    yield bed
    for name in bed.host.run(["virsh", "-q", "list", "--name"]).check().stdout.split():
        bed.host.run(["virsh", "-q", "destroy", name]).check()


def test_corrected_then_suspended_and_resumed(libvirt_bed: Bed, figures: Figures) -> None:
    bed, agent = libvirt_bed, libvirt_bed.agent
    domain = Domain(bed, "2b3f44a4-55a1-4c33-8d5f-1d2a7f3c0002", 0)
    pages, bound = agent.pages(domain.name, domain.node)
    assert bound
    assert pages >= 64 << 8
    agent.begin_held("m1", domain.name)
    done = bed.ended(domain.name)
    assert (done.state, done.held, done.reason) == ("mitigated", True, "")
    assert domain.grant.allocation_uuid in agent.attached()
    assert domain.bindings("dumpxml", "--inactive") == POOLED
    assert agent.rewrite(domain.name).changed
    assert domain.bindings("dumpxml", "--inactive") == LOCAL
    assert not agent.rewrite(domain.name).changed
    agent.release(domain.name)
    bed.until(lambda: domain.grant.allocation_uuid in agent.released())
    bed.take_back(domain.grant)
    domain.check_local()
    domain.looks(2)

    domain.virsh("managedsave", domain.name)
    assert domain.bindings("managedsave-dumpxml") == POOLED, "that of the running guest, as it was started"
    done = agent.rewrite(domain.name)
    assert (done.state, done.managed_save, done.changed) == ("rewritten", True, True)
    assert domain.bindings("managedsave-dumpxml") == LOCAL
    domain.virsh("start", domain.name)
    domain.looks(2)
    domain.check_local()
    assert domain.bindings("dumpxml") == LOCAL
    figures.add("guest of libvirt, corrected, suspended, resumed: words verified", domain.words(), "words", "0 wrong")
    domain.virsh("destroy", domain.name)


def test_suspended_then_corrected_and_resumed(libvirt_bed: Bed, figures: Figures) -> None:
    bed, agent = libvirt_bed, libvirt_bed.agent
    domain = Domain(bed, "2b3f44a4-55a1-4c33-8d5f-1d2a7f3c0003", 1)
    domain.virsh("managedsave", domain.name)
    done = agent.begin_held("m1", domain.name)
    assert (done.state, done.pages_total) == ("mitigated", 0)
    done = agent.rewrite(domain.name)
    assert (done.state, done.managed_save, done.changed) == ("rewritten", True, True)
    agent.release(domain.name)
    bed.until(lambda: domain.grant.allocation_uuid in agent.released())
    bed.take_back(domain.grant)
    domain.virsh("start", domain.name)
    domain.looks(2)
    domain.check_local()
    assert domain.bindings("dumpxml") == domain.bindings("dumpxml", "--inactive") == LOCAL
    figures.add("guest of libvirt, suspended, corrected, resumed: words verified", domain.words(), "words", "0 wrong")
    domain.virsh("destroy", domain.name)
