"""Kernels do the same work wherever their memory is, and see a wrong result."""

from collections.abc import Sequence

import pytest

from pondstack.domain.errors import HostUnusable
from pondstack_agent.sampler.arena import PAGE, Arena
from pondstack_agent.sampler.kernels import KERNELS

MIB = 1024 * 1024


class Nodes:
    """Memory that is where it was bound to, of a machine with as many nodes as are wanted."""

    def __init__(self) -> None:
        self.bound: list[tuple[int, int, int]] = []

    def bind(self, address: int, size: int, node: int) -> None:
        """Note it."""
        self.bound.append((address, size, node))

    def where(self, addresses: Sequence[int]) -> list[int]:
        """Return what was noted."""
        return [self._node(address) for address in addresses]

    def _node(self, address: int) -> int:
        return next(node for begin, size, node in self.bound if begin <= address < begin + size)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_comes_to_the_same_result_twice_and_needs_its_memory(name: str) -> None:
    results = []
    for _ in range(2):
        run = KERNELS[name](Arena(2 * MIB, 0.0, 0, 1, Nodes()), MIB)
        results.append((run(1), run(3)))
    assert results[0] == results[1]
    with pytest.raises(ValueError, match="buffer"):
        KERNELS[name](Arena(64 * 1024, 0.0, 0, 1, Nodes()), MIB)


def test_a_chase_visits_every_line_before_it_comes_back() -> None:
    arena = Arena(2 * MIB, 0.0, 0, 1, Nodes())
    KERNELS["pointer-chase"](arena, MIB)
    view, place, seen = arena.view(), 0, set()
    while place not in seen:
        seen.add(place)
        place = view[place]
    assert (len(seen), place) == (MIB // 64, 0)


@pytest.mark.parametrize(("spill", "pages"), [(0.0, (256, 0)), (25.0, (192, 64)), (100.0, (0, 256))])
def test_the_last_part_of_an_arena_is_in_the_pool(spill: float, pages: tuple[int, int]) -> None:
    nodes = Nodes()
    Arena(256 * PAGE, spill, 3, 5, nodes)
    sizes = {node: size // PAGE for _, size, node in nodes.bound}
    assert (sizes.get(3, 0), sizes.get(5, 0)) == pages
    assert sum(sizes.values()) == 256


def test_memory_that_is_elsewhere_is_not_used() -> None:
    nodes = Nodes()
    arena = Arena(16 * PAGE, 50.0, 0, 1, nodes)
    arena.array(16 * PAGE, "uint8")[:] = 1
    arena.check()
    nodes.bound = [(begin, size, 0) for begin, size, _ in nodes.bound]
    with pytest.raises(HostUnusable, match="bound to node 1 is on node 0"):
        arena.check()
