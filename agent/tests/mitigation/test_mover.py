"""What moves chunk by chunk, and what is left to the cgroup."""

from collections.abc import Callable

import pytest

from pondstack.domain.errors import InUse
from pondstack_agent.host import numa
from pondstack_agent.host.numa import Region
from pondstack_agent.mitigation import mover
from pondstack_agent.mitigation.mover import Aborted, Mover

POOL, PAGE, CHUNKS = 2, 4096, 4
MIB = 1 << 20


class Machine:
    """A guest of four chunks of 1 MiB, its cgroup, and local nodes: what was done to them, in order."""

    consumer_uuid, pid = "vm1", 10

    def __init__(self) -> None:
        self.where = dict.fromkeys(range(0, CHUNKS * MIB, PAGE), POOL)
        self.policy = POOL
        self.free = {0: 3, 1: 2}
        self.done: list[tuple[str, int]] = []

    def regions_on(self, node: int) -> list[Region]:
        """As Guest.regions_on."""
        return [Region(0, CHUNKS * MIB, frozenset({self.policy}), pages={node: self.on(node)})]

    def numa_maps(self) -> str:
        """As Guest.numa_maps."""
        pages = "".join(f" N{node}={self.on(node)}" for node in sorted(set(self.where.values())))
        return f"00000000 bind:{self.policy} anon={len(self.where)}{pages} kernelpagesize_kB=4\n"

    def uses(self, numa_maps: str, node: int) -> bool:
        """As Guest.uses."""
        return numa.uses(numa_maps, node)

    def free_mib(self) -> dict[int, int]:
        """As HostNodes.free_mib."""
        return self.free

    def move_pages(self, _pid: int, ranges: list[tuple[int, int, int]], node: int) -> str:
        """As privileged.move_pages."""
        addresses = [address for start, end, step in ranges for address in range(start, end, step)]
        self.where.update(dict.fromkeys(addresses, node))
        self.free[node] -= 1
        self.done.append(("chunk", node))
        return ""

    def bind(self, nodes: tuple[int, ...]) -> None:
        """As Cgroup.bind."""
        self.done.append(("cgroup", self.on(POOL)))
        self.where.update({address: nodes[0] for address, node in self.where.items() if node == POOL})
        self.policy = nodes[0]

    def on(self, node: int) -> int:
        """Return how many pages are on a node."""
        return sum(at == node for at in self.where.values())


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Nothing has moved."""
    made = Machine()
    monkeypatch.setattr(mover.privileged, "move_pages", made.move_pages)
    return made


def move(machine: Machine, targets: tuple[int, ...], chunk_mib: int = 1, aborted: Callable[[], bool] = bool) -> None:
    """Move it off the pool's node."""
    mine = Mover(machine, chunk_mib)
    mine.move(machine, machine, POOL, targets, machine.regions_on(POOL), aborted)


def test_the_cgroup_moves_the_last_chunk(machine: Machine) -> None:
    move(machine, (0,))
    assert machine.done == [("chunk", 0)] * 3 + [("cgroup", MIB // PAGE)]
    assert (machine.on(0), machine.policy) == (CHUNKS * MIB // PAGE, 0)


def test_no_more_than_a_chunk_is_left_to_the_cgroup(machine: Machine) -> None:
    move(machine, (0,), chunk_mib=3)
    assert machine.done == [("chunk", 0), ("cgroup", MIB // PAGE)]


def test_a_guest_of_one_chunk(machine: Machine) -> None:
    move(machine, (0,), chunk_mib=8)
    assert machine.done == [("cgroup", CHUNKS * MIB // PAGE)]


def test_with_several_local_nodes_each_chunk_goes_where_there_is_most_room(machine: Machine) -> None:
    move(machine, (0, 1))
    assert machine.done == [("chunk", 0), ("chunk", 0), ("chunk", 1), ("chunk", 0), ("cgroup", 0)]


@pytest.mark.parametrize("looks", range(1, CHUNKS + 1))
def test_an_abort_before_any_chunk_leaves_a_guest_of_the_pool(machine: Machine, looks: int) -> None:
    answers = iter([False] * (looks - 1) + [True])
    with pytest.raises(Aborted):
        move(machine, (0,), aborted=lambda: next(answers))
    assert machine.done == [("chunk", 0)] * (looks - 1)
    assert (machine.on(POOL), machine.policy) == ((CHUNKS - looks + 1) * MIB // PAGE, POOL)


def test_what_the_cgroup_leaves_behind_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "bind", lambda _nodes: None)
    with pytest.raises(InUse, match="256 pages of guest vm1 stay on node 2"):
        move(machine, (0,))
