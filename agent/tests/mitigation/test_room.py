"""Memory by node: what is free, and reservations of the local one."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pondstack.domain.errors import HostUnusable, NoLocalRoom
from pondstack_agent.mitigation.room import HostNodes, LocalRoom

MEMINFO = """\
Node {node} MemTotal:  8388608 kB
Node {node} MemFree:   1048576 kB
Node {node} Inactive(file): 524288 kB
Node {node} Dirty:     262144 kB
Node {node} Writeback: 0 kB
"""


def test_free_memory_of_local_nodes(tmp_path: Path) -> None:
    (tmp_path / "has_cpu").write_text("0-1\n")
    for node in range(3):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}/meminfo").write_text(MEMINFO.format(node=node))
    nodes = HostNodes(tmp_path)
    assert nodes.with_cpus() == {0, 1}
    assert nodes.free_mib() == {0: 1280, 1: 1280}


def test_spare_pages_of_a_node_are_those_that_the_kernel_does_not_keep(tmp_path: Path) -> None:
    (tmp_path / "zoneinfo").write_text("Node 2, zone  Movable\n        high     1000\n")
    (tmp_path / "node2").mkdir()
    meminfo = tmp_path / "node2/meminfo"
    meminfo.write_text(MEMINFO.format(node=2))
    nodes = HostNodes(tmp_path, tmp_path / "zoneinfo")
    assert nodes.kept_pages(2) == 1000
    assert nodes.spare_pages(2) == (1 << 30) // 4096 - 1000
    meminfo.write_text("Node 2 MemFree: 3996 kB\n")
    assert nodes.spare_pages(2) == 0
    with pytest.raises(HostUnusable, match="node3"):
        nodes.spare_pages(3)


def test_a_host_without_nodes_is_told(tmp_path: Path) -> None:
    with pytest.raises(HostUnusable, match="has_cpu"):
        HostNodes(tmp_path).free_mib()


def test_two_at_once_cannot_take_the_same_room() -> None:
    room = LocalRoom(lambda: {0: 1000, 1: 5000}, headroom_mib=100)

    def reserve(name: str) -> bool:
        try:
            room.reserve(name, 500, [0])
        except NoLocalRoom:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        won = [name for name, ok in zip("abcdefgh", threads.map(reserve, "abcdefgh"), strict=True) if ok]
    assert len(won) == 1
    room.give_back(won[0])
    room.give_back(won[0])
    assert reserve("z")
