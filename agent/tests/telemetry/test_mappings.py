"""Which mapping is which node, by path, by size, by policy, or not at all."""

import pytest

from pondstack_agent.telemetry.guests import Node
from pondstack_agent.telemetry.mappings import Mapped, match, parse_maps, parse_policies

MIB = 2**20
MAPS = """\
55d0c0000000-55d0c0100000 r-xp 00000000 fe:00 77                         /usr/bin/qemu-system-x86_64
7f0000000000-7f0010000000 rw-p 00000000 00:00 0
7f0010000000-7f0010001000 ---p 00000000 00:00 0
7f0020000000-7f0024000000 rw-s 40000000 fe:00 4711                       /pool/memory
7f0024000000-7f0028000000 rw-s 44000000 fe:00 4711                       /pool/memory
7f0030000000-7f0034000000 rw-s 00000000 00:01 99                         /memfd:memory-backend-memfd (deleted)
"""


def never() -> dict[int, frozenset[int]]:
    pytest.fail("sizes told it")


def test_maps_are_read_and_pieces_joined() -> None:
    found = parse_maps(MAPS)
    assert [item.size // MIB for item in found] == [256, 128, 64]
    assert found[1].name == "7f0020000000-7f0024000000"
    assert found[1].offset == 0x40000000
    assert found[2].path == "/memfd:memory-backend-memfd (deleted)"


def test_each_kind_of_node_is_found() -> None:
    nodes = (
        Node(0, 256 * MIB),
        Node(1, 64 * MIB, shared=True, path="/pool/memory", offset_bytes=0x44000000),
        Node(2, 64 * MIB, shared=True),
    )
    ranges = [group.ranges[0] for group in match(nodes, parse_maps(MAPS), never)]
    assert [item.start for item in ranges] == [0x7F0000000000, 0x7F0024000000, 0x7F0030000000]
    assert ranges[1].offset == 0x44000000


def test_a_file_of_qemus_own_in_a_folder() -> None:
    mapped = [Mapped(0x1000, 0x1000 + MIB, shared=True, inode=5, path="/dev/shm/qemu_back_mem.ram-node1.X7 (deleted)")]
    (group,) = match([Node(1, MIB, shared=True, path="/dev/shm/")], mapped, never)
    assert group.ranges == tuple(mapped)


def test_a_memfd_that_is_mapped_privately() -> None:
    mapped = [Mapped(0x1000, 0x1000 + MIB, inode=5, path="/memfd:memory-backend-memfd (deleted)")]
    (group,) = match([Node(0, MIB)], mapped, never)
    assert group.ranges == tuple(mapped)


def test_what_is_not_there_is_said() -> None:
    lost = [Node(0, 32 * MIB), Node(1, MIB, shared=True, path="/pool/memory", offset_bytes=0)]
    first, second = match(lost, parse_maps(MAPS), never)
    assert (first.ranges, second.ranges) == ((), ())
    assert "no mapping of 32 MiB" in first.reason
    assert "/pool/memory" in second.reason


def two(*policies: str) -> tuple[list[Node], list[Mapped], dict[int, frozenset[int]]]:
    nodes = [Node(number, MIB, host_nodes=frozenset({number})) for number in (0, 1)]
    mapped = [Mapped(at * 16 * MIB, at * 16 * MIB + MIB) for at in (1, 2)]
    text = "".join(
        f"{item.start:x} {policy} anon=1 dirty=1 N0=1\n" for item, policy in zip(mapped, policies, strict=True)
    )
    return nodes, mapped, parse_policies(text)


def test_equal_sizes_are_told_apart_by_their_host_nodes() -> None:
    nodes, mapped, policies = two("bind:1", "bind:0")
    found = {group.nodes[0].number: group.ranges[0] for group in match(nodes, mapped, lambda: policies)}
    assert found == {0: mapped[1], 1: mapped[0]}


def test_nodes_that_look_alike_are_one_group() -> None:
    nodes, mapped, policies = two("default", "default")
    (group,) = match(nodes, mapped, lambda: policies)
    assert [node.number for node in group.nodes] == [0, 1]
    assert group.size_bytes == 2 * MIB
    assert len(group.ranges) == 2


def test_a_stranger_of_the_same_size_makes_it_unknown() -> None:
    nodes, mapped, _ = two("default", "default")
    (group,) = match(nodes[:1], mapped, dict)
    assert group.ranges == ()
    assert "2 mappings of 1 MiB" in group.reason
