"""An agent over a fake kernel: one guest with pool memory, killed before whatever step a test names."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pondstack.domain.errors import InUse, NotFound
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


def verbs_of(agent) -> MitigationEndpoint:
    """Return the verbs of an agent for mitigations."""
    (found,) = (part for part in agent.endpoints if isinstance(part, MitigationEndpoint))
    return found


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

    def uses(self, numa_maps: str, node: int) -> bool:
        """As Guest.uses."""
        return numa.uses(numa_maps, node)

    def numa_maps(self) -> str:
        """As Guest.numa_maps."""
        pages = "".join(f" N{node}={count}" for node, count in self.pages.items() if count)
        return f"00000000 bind:{self.policy} anon={PAGES}{pages} kernelpagesize_kB=4\n" if self.running else ""

    def regions(self) -> list[Region]:
        """As Guest.regions."""
        return numa.parse(f"00000000-{PAGES * 4096:08x} rw-p 00000000 00:00 0\n", self.numa_maps())

    def regions_on(self, node: int) -> list[Region]:
        """As Guest.regions_on."""
        return [region for region in self.regions() if region.pages.get(node)]

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
        if self.kernel.running and self.kernel.uses(self.kernel.numa_maps(), POOL):
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
        self.rig.agent = built
        found = self.led._mitigations
        found._find, found._cgroup_of = self.kernel.find, lambda guest: guest
        misplaced = built.housekeeper._misplaced
        misplaced._find, misplaced._migrating = self.kernel.find, lambda _pid: False
        built.housekeeper.recover()
        self.rig.later.run()

    @property
    def led(self):
        """The verbs by which the controller leads a mitigation."""
        return verbs_of(self.rig.agent)

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
        return Mitigation.from_wire(call(self.led.mitigate, epoch=EPOCH, operation_id=operation, consumer_uuid="vm1"))

    def now(self):
        """Ask how far it is."""
        found = call(self.led.get_mitigation, consumer_uuid="vm1")
        return Mitigation.from_wire(found) if found else None

    def _step(self, name: str) -> None:
        if name == self.kill_at:
            raise Killed
        self.at.get(name, lambda: None)()
