"""The verb: room first, then pages, then the record, then the slices; aborted, failed, killed at each step."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest, Conflict, InUse, NoLocalRoom, NotFound, StaleEpoch, Unavailable
from pondstack.rpc.wire import Backing, Mitigation
from pondstack_agent.build import build_agent
from pondstack_agent.drivers import HostPools
from pondstack_agent.drivers.emulated import EmulatedHostPool
from pondstack_agent.host import numa
from pondstack_agent.host.numa import Region
from pondstack_agent.mitigation import mitigations, mover
from pondstack_agent.mitigation.domains import Domains
from pondstack_agent.mitigation.endpoint import MitigationEndpoint
from tests.fixtures.rpc_call import call

POOL, PAGES = 1, 512
EPOCH = 1


class Killed(BaseException):
    """The agent ended here."""


@dataclass
class Kernel:
    """One guest of 2 MiB on node 1, its cgroup, and the node's free memory: what the real kernel would do."""

    pages: dict[int, int] = field(default_factory=lambda: {POOL: PAGES})
    policy: int = POOL
    pinned: int = 0
    running: bool = True
    free_mib: int = 100
    moves: int = 0
    evacuations: int = 0

    consumer_uuid, pid = "vm1", 10

    def uses(self, regions: Iterable[Region], node: int) -> bool:
        """As Guest.uses."""
        return numa.uses(regions, node)

    def regions(self) -> list[Region]:
        """As Guest.regions."""
        return [Region(0, PAGES * 4096, frozenset({self.policy}), pages=dict(self.pages))] if self.running else []

    def allowed(self) -> set[int]:
        """As Cgroup.allowed."""
        return {0, 1}

    def bind(self, nodes: tuple[int, ...]) -> None:
        """As Cgroup.bind."""
        self.policy = nodes[0]
        self.shift(self.pages.get(POOL, 0), nodes[0])

    def move_pages(self, _pid: int, ranges: list[tuple[int, int, int]], node: int) -> str:
        """As privileged.move_pages."""
        self.moves += 1
        self.shift(sum(len(range(*item)) for item in ranges), node)
        return ""

    def gather_pages(self, _pid: int, _ranges: object, node: int, at_most: int) -> tuple[int, int, str]:
        """As privileged.gather_pages, of all that is elsewhere."""
        back = sum(count for other, count in self.pages.items() if other != node)
        assert back <= at_most
        self.pages = {node: self.pages[node] + back}
        return back, 0, ""

    def shift(self, count: int, node: int) -> None:
        """Move pages that are not pinned."""
        count = max(min(count, self.pages.get(POOL, 0) - self.pinned), 0)
        self.pages[POOL] = self.pages.get(POOL, 0) - count
        self.pages[node] = self.pages.get(node, 0) + count

    def find(self, consumer: str) -> "Kernel":
        """As guest.find."""
        if not self.running or consumer != self.consumer_uuid:
            raise NotFound(consumer)
        return self

    def with_cpus(self) -> set[int]:
        """As HostNodes.with_cpus."""
        return {0}


class NodePool(EmulatedHostPool):
    """The emulated driver, as if its memory were node 1 of the host."""

    kernel: Kernel

    def backings(self, allocation_uuid: str) -> tuple[Backing, ...]:
        """On the node."""
        return tuple(Backing("node", item.size_mib, host_node=POOL) for item in super().backings(allocation_uuid))

    def evacuations(self) -> dict[int, int | None]:
        """What the test has of it."""
        return {POOL: self.kernel.evacuations}

    def vacate(self, _allocation_uuid: str) -> None:
        """Check, as the CXL driver does."""
        self._check()

    def detach(self, allocation_uuid: str) -> bool:
        """Slices with pages on them, or to come, never go."""
        self._check()
        return super().detach(allocation_uuid)

    def _check(self) -> None:
        if self.kernel.running and self.kernel.uses(self.kernel.regions(), POOL):
            raise InUse("its guest runs on it")


class Host:
    """The agent over the fake kernel; `kill_at` ends it before a step, `at` does something there."""

    def __init__(self, rig, kernel: Kernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, device) -> None:
        self.rig, self.kernel, self.kill_at, self.at = rig, kernel, "", {}
        self.driver = NodePool(host="host1", state_dir=tmp_path / "state", device_paths=[str(device.path)])
        self.driver.kernel = kernel
        rig.conf.set_override("mitigation_chunk_mib", 1, group="agent")
        rig.conf.set_override("mitigation_headroom_mib", 10, group="agent")
        monkeypatch.setattr(Domains, "check", lambda _self: None)
        monkeypatch.setattr(mover.privileged, "move_pages", kernel.move_pages)
        monkeypatch.setattr(mover.privileged, "gather_pages", kernel.gather_pages)
        monkeypatch.setattr(mitigations.HostNodes, "with_cpus", lambda _self: {0})
        monkeypatch.setattr(mitigations.HostNodes, "kept_pages", lambda _self, _node: 0)
        monkeypatch.setattr(mitigations.HostNodes, "spare_pages", lambda _self, _node: PAGES)
        monkeypatch.setattr("pondstack_agent.mitigation.room.HostNodes.free_mib", lambda _self: {0: kernel.free_mib})
        self.restart()

    def restart(self) -> None:
        """Its next life."""
        self.kill_at = ""
        self.rig.later = type(self.rig.later)()
        clock = lambda: self.rig.now  # noqa: E731
        built = build_agent(
            self.rig.conf,
            self.rig.controller,
            self.rig.later,
            pools=HostPools([self.driver]),
            clock=clock,
            step=self._step,
        )
        found = built.endpoint._mitigations
        found._find, found._cgroup_of = self.kernel.find, lambda guest: guest
        misplaced = built.housekeeper._misplaced
        misplaced._find, misplaced._migrating = self.kernel.find, lambda _pid: False
        self.rig.agent = built
        built.housekeeper.recover()
        self.rig.later.run()

    @property
    def led(self):
        """The verbs by which the controller leads a mitigation."""
        return next(item for item in self.rig.agent.endpoints if isinstance(item, MitigationEndpoint))

    def hold(self, operation: str = "m1"):
        """Begin one whose slices stay."""
        asked = {"epoch": EPOCH, "operation_id": operation, "consumer_uuid": "vm1", "hold": True}
        return Mitigation.from_wire(call(self.led.mitigate, **asked))

    def release(self) -> bool:
        """Order the slices back."""
        done = call(self.led.release_mitigated, epoch=EPOCH, operation_id="r1", consumer_uuid="vm1")
        self.rig.later.run()
        return done

    def abort(self, operation: str = ""):
        """Abort, as the controller does."""
        asked = {"epoch": EPOCH, "consumer_uuid": "vm1", "operation_id": operation}
        return Mitigation.from_wire(call(self.led.abort_mitigation, **asked))

    def mitigate(self, operation: str = "m1"):
        """Call it as the controller does."""
        endpoint = self.rig.agent.endpoint
        return Mitigation.from_wire(call(endpoint.mitigate, epoch=EPOCH, operation_id=operation, consumer_uuid="vm1"))

    def now(self):
        """Ask how far it is."""
        found = call(self.rig.agent.endpoint.get_mitigation, consumer_uuid="vm1")
        return Mitigation.from_wire(found) if found else None

    def _step(self, name: str) -> None:
        if name == self.kill_at:
            raise Killed
        self.at.get(name, lambda: None)()


@pytest.fixture
def host(rig, monkeypatch, tmp_path, device):
    """A host whose guest vm1 has 2 MiB of the pool."""
    made = Host(rig, Kernel(), monkeypatch, tmp_path, device)
    rig.attach("op1")
    return made


def test_pages_move_and_slices_go_back_while_the_guest_runs(host) -> None:
    begun = host.mitigate()
    assert (begun.state, begun.pages_total, begun.pages_moved) == ("moving", PAGES, 0)
    seen = []
    host.at["chunk"] = lambda: seen.append(host.now().pages_moved)
    host.rig.later.run()
    assert seen == [0, 256]
    done = host.now()
    assert (done.state, done.pages_moved, done.reason) == ("mitigated", PAGES, "")
    assert host.kernel.running
    assert host.rig.attached() == set()
    assert host.rig.controller.held == {}
    assert host.rig.attachment() is None
    with pytest.raises(Conflict):
        host.rig.attach("op1")


def test_a_repetition_does_nothing_twice(host) -> None:
    first = host.mitigate()
    assert host.mitigate() == first
    assert host.mitigate("other").operation_id == "m1"  # one is under way
    host.rig.later.run()
    assert host.kernel.moves == 2
    assert host.mitigate().state == "mitigated"
    assert host.rig.controller.calls.count("release") == 1


def test_without_room_nothing_moves(host) -> None:
    host.kernel.free_mib = 11
    with pytest.raises(NoLocalRoom, match="migrate the guest"):
        host.mitigate()
    host.rig.later.run()
    assert host.now() is None
    assert (host.kernel.moves, host.kernel.policy) == (0, POOL)
    host.kernel.free_mib = 12
    assert host.mitigate().state == "moving"


def test_aborted_between_two_chunks(host) -> None:
    host.mitigate()
    host.at["chunk"] = lambda: call(host.rig.agent.endpoint.abort_mitigation, epoch=EPOCH, consumer_uuid="vm1")
    host.rig.later.run()
    assert (host.now().state, host.now().pages_moved) == ("aborted", 256)
    assert host.kernel.policy == POOL
    assert len(host.rig.attached()) == 1
    host.at.clear()
    host.mitigate("m2")
    host.rig.later.run()
    assert (host.now().state, host.now().pages_total) == ("mitigated", 256)


def test_pinned_pages_keep_the_slices(host) -> None:
    host.kernel.pinned = 3
    host.mitigate()
    host.rig.later.run()
    assert host.now().state == "failed"
    assert "3 pages of guest vm1 stay on node 1" in host.now().reason
    host.rig.beat()
    assert len(host.rig.attached()) == 1


def test_a_guest_that_ends_meanwhile(host) -> None:
    host.mitigate()
    host.at["chunk"] = lambda: setattr(host.kernel, "running", False)
    host.rig.later.run()
    assert host.now().state == "failed"
    assert host.rig.detach("d1")
    host.rig.later.run()
    assert host.rig.controller.held == {}


@pytest.mark.parametrize("step", ["record", "chunk", "cgroup", "mitigated", "release"])
def test_killed_at_each_step(host, step: str) -> None:
    host.kill_at = step
    if step != "record":
        host.mitigate()
    with pytest.raises(Killed):
        host.rig.later.run() if step != "record" else host.mitigate()
    moved_for_good = host.kernel.policy == 0
    assert len(host.rig.attached()) == 1
    host.restart()
    if moved_for_good:
        assert host.now().state == "mitigated"
    else:
        assert step == "record" or (host.now().state, "restarted" in host.now().reason) == ("failed", True)
        assert len(host.rig.attached()) == 1
        host.mitigate("m2")
        host.rig.later.run()
    assert host.rig.attached() == set()
    assert host.rig.controller.held == {}


def test_what_was_given_back_is_not_given_back_again(host) -> None:
    host.mitigate()
    host.rig.later.run()
    released: list[None] = []
    host.at["release"] = lambda: released.append(None)
    host.restart()
    assert released == []
    assert host.now().state == "mitigated"


def test_what_the_driver_keeps_is_given_back_later(host, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(host.driver, "vacate", fail_in_use)
        host.mitigate()
        host.rig.later.run()
        assert host.now().state == "mitigated"
        assert len(host.rig.attached()) == 1
    host.rig.beat()
    assert host.rig.attached() == set()


def fail_in_use(_allocation: str) -> None:
    raise InUse("not yet")


def test_who_has_nothing_on_a_node_is_refused(host) -> None:
    endpoint = host.rig.agent.endpoint
    with pytest.raises(NotFound, match="no pool memory"):
        call(endpoint.mitigate, epoch=EPOCH, operation_id="m1", consumer_uuid="vm2")
    with pytest.raises(NotFound):
        call(endpoint.abort_mitigation, epoch=EPOCH, consumer_uuid="vm2")
    call(endpoint.report, epoch=5)
    with pytest.raises(StaleEpoch):
        host.mitigate()


def test_a_file_is_no_node(rig) -> None:
    rig.attach("op1")
    with pytest.raises(BadRequest, match="live-migrate"):
        call(rig.agent.endpoint.mitigate, epoch=EPOCH, operation_id="m1", consumer_uuid="vm1")


def test_a_file_is_no_node_whether_libvirt_answers_or_not(rig, monkeypatch) -> None:
    """Its guest is moved to another host, which needs none: nobody is to wait for it."""
    monkeypatch.setattr(Domains, "check", unreachable)
    rig.attach("op1")
    (led,) = (part for part in rig.agent.endpoints if isinstance(part, MitigationEndpoint))
    with pytest.raises(BadRequest, match="live-migrate"):
        call(led.mitigate, epoch=EPOCH, operation_id="m1", consumer_uuid="vm1", hold=True)


def unreachable(_self: object) -> None:
    """Be a libvirt that does not answer."""
    raise Unavailable("no libvirt")


def test_a_held_one_keeps_its_slices_until_they_are_ordered_back(host) -> None:
    begun = host.hold()
    assert (begun.state, begun.held) == ("moving", True)
    host.rig.later.run()
    assert (host.now().state, host.now().pages_moved) == ("mitigated", PAGES)
    host.rig.now += 3601
    host.rig.beat()
    host.restart()
    host.rig.beat()
    assert len(host.rig.attached()) == 1
    assert host.hold() == host.now(), "it is remembered as long as it holds"
    with pytest.raises(Conflict, match="too late"):
        host.abort()
    assert host.release()
    assert host.rig.attached() == set()
    assert host.rig.controller.held == {}
    assert host.release(), "nothing is held any more"


@pytest.mark.parametrize("step", ["record", "chunk", "cgroup", "mitigated", "release"])
def test_a_held_one_killed_at_each_step(host, step: str) -> None:
    """Its slices go by order only, whenever the agent is killed; an order once given is carried out."""
    host.kill_at = step
    if step == "record":
        with pytest.raises(Killed):
            host.hold()
    else:
        host.hold()
        if step == "release":
            host.rig.later.run()
            with pytest.raises(Killed):
                host.release()
        else:
            with pytest.raises(Killed):
                host.rig.later.run()
    host.restart()
    if step == "release":
        assert host.rig.attached() == set()
        assert host.rig.controller.held == {}
        return
    assert len(host.rig.attached()) == 1
    if step != "mitigated":
        assert step == "record" or host.now().state == "failed"
        host.hold("m2")
        host.rig.later.run()
    assert host.now().state == "mitigated"
    assert len(host.rig.attached()) == 1
    assert host.release()
    assert host.rig.attached() == set()


def test_slices_of_a_guest_that_uses_them_again_stay(host) -> None:
    """It was started again by a domain from before: the kernel says so, whatever is on record."""
    host.hold()
    host.rig.later.run()
    host.kernel.policy = POOL
    with pytest.raises(InUse):
        host.release()
    host.rig.beat()
    assert len(host.rig.attached()) == 1
    host.hold("m2")
    host.rig.later.run()
    assert host.release()
    assert host.rig.attached() == set()


def test_only_what_is_mitigated_is_given_back(host) -> None:
    with pytest.raises(Conflict, match="mitigate it first"):
        host.release()
    host.hold()
    host.abort()
    host.rig.later.run()
    assert host.now().state == "aborted"
    with pytest.raises(Conflict, match="mitigate it first"):
        host.release()
    assert len(host.rig.attached()) == 1


def test_a_held_one_of_a_guest_that_does_not_run(host) -> None:
    host.kernel.running = False
    with pytest.raises(NotFound):
        host.mitigate()
    done = host.hold()
    assert (done.state, done.pages_total) == ("mitigated", 0)
    assert len(host.rig.attached()) == 1
    assert host.release()
    assert host.rig.attached() == set()


def test_one_that_was_aborted_on_its_way_never_begins(host) -> None:
    assert host.abort("m1").state == "aborted"
    assert host.hold("m1").state == "aborted"
    host.rig.later.run()
    assert (host.kernel.moves, host.kernel.policy) == (0, POOL)
    host.hold("m2")
    host.abort("m3")  # the one that is under way ends
    host.rig.later.run()
    assert (host.now().operation_id, host.now().state) == ("m2", "aborted")


def test_what_cannot_be_rewritten_is_not_moved(host, monkeypatch) -> None:
    monkeypatch.setattr(Domains, "check", unreachable)
    with pytest.raises(Unavailable):
        host.hold()
    host.rig.later.run()
    assert (host.now(), host.kernel.moves) == (None, 0)


def test_old_ones_are_forgotten(host) -> None:
    host.mitigate()
    host.rig.later.run()
    host.rig.now += 3601
    host.rig.beat()
    assert host.now() is None


def test_pages_that_the_kernel_moved_are_moved_back_by_the_heartbeat(host) -> None:
    host.kernel.pages = {0: 100, POOL: PAGES - 100}
    host.kernel.evacuations += 1
    host.rig.beat()
    assert host.kernel.pages == {POOL: PAGES}


def test_pages_that_a_mitigation_moved_stay_local(host) -> None:
    host.mitigate()
    host.at["chunk"] = lambda: call(host.rig.agent.endpoint.abort_mitigation, epoch=EPOCH, consumer_uuid="vm1")
    host.kernel.evacuations += 1
    host.rig.beat()
    local = {0: 256, POOL: PAGES - 256}
    assert (host.now().state, host.kernel.pages) == ("aborted", local)
    host.kernel.evacuations += 1
    host.rig.beat()
    assert host.kernel.pages == local
    host.restart()
    host.rig.beat()
    assert host.kernel.pages == local
