"""Decisions of a mitigation."""

import pytest

from pondstack.domain.errors import HostUnusable, NoLocalRoom
from pondstack_agent.host.numa import Region
from pondstack_agent.mitigation import plan

MIB = 1 << 20


def test_targets_are_local_nodes_that_the_guest_may_use() -> None:
    assert plan.targets({0, 1, 2}, {0, 1}, 2) == (0, 1)
    assert plan.targets({1, 2}, {0, 1}, 2) == (1,)
    with pytest.raises(HostUnusable, match=r"cpuset\.mems"):
        plan.targets({2}, {0, 1}, 2)


def test_room_is_what_is_free_less_reservations_and_headroom() -> None:
    plan.check_room(100, {0: 150, 1: 50}, 60, 40)
    with pytest.raises(NoLocalRoom, match="101 MiB of local memory are needed and 100 MiB are there"):
        plan.check_room(101, {0: 150, 1: 50}, 60, 40)
    with pytest.raises(NoLocalRoom, match=" 0 MiB are there"):
        plan.check_room(1, {0: 10}, 60, 40)


def test_chunks_cover_mappings_with_pages_on_the_node_and_nothing_else() -> None:
    regions = [
        Region(0, 5 * MIB, pages={0: 9}),
        Region(16 * MIB, 26 * MIB, pages={1: 1}),
        Region(32 * MIB, 33 * MIB, pages={1: 1}),
        Region(64 * MIB, 70 * MIB, page_kib=2048, pages={1: 3}),
    ]
    chunks = list(plan.chunks(regions, 1, 4))
    addresses = [address for chunk in chunks for piece in chunk for address in piece]
    wanted = [*range(16 * MIB, 26 * MIB, 4096), *range(32 * MIB, 33 * MIB, 4096), 64 * MIB, 66 * MIB, 68 * MIB]
    assert addresses == wanted
    sizes = [sum(piece.stop - piece.start for piece in chunk) for chunk in chunks]
    assert max(sizes) <= 5 * MIB
    assert len(chunks) == 4


def test_a_page_larger_than_a_chunk_moves_alone() -> None:
    [first, second] = plan.chunks([Region(0, 4 * MIB, page_kib=2048, pages={1: 2})], 1, 1)
    assert (list(first[0]), list(second[0])) == ([0], [2 * MIB])


def test_the_roomiest_node() -> None:
    assert plan.roomiest((0, 1), {0: 5, 1: 7, 2: 100}) == 1
    assert plan.roomiest((0, 1), {0: 7, 1: 7}) == 0
