"""Which pages are misplaced, and when there is something left to do."""

import pytest

from pondstack_agent.host.numa import Region
from pondstack_agent.misplaced import plan
from pondstack_agent.misplaced.plan import Look, Outcome

POOL = 2


def region(*nodes: int, writable: bool = True, page_kib: int = 4, **pages: int) -> Region:
    """A mapping with a policy of nodes, and pages n0=..., n2=..."""
    by_node = {int(name[1:]): count for name, count in pages.items()}
    return Region(0, 1 << 20, frozenset(nodes), page_kib, by_node, writable)


def test_backends_of_the_node_with_pages_elsewhere() -> None:
    away, other_pool, huge = region(POOL, n0=3, n2=5), region(POOL, n3=1), region(POOL, n0=1, n2=1, page_kib=2048)
    regions = [
        away,
        other_pool,
        huge,
        region(POOL, n2=7),
        region(0, n0=100),  # the guest's local cell
        region(n0=100),  # QEMU's own
        region(0, POOL, n0=9),  # of a host that tiers
        region(POOL, n0=9, writable=False),  # a library
    ]
    assert plan.misplaced(regions, POOL) == [away, other_pool, huge]
    assert plan.count(regions, POOL) == 3 + 1 + 512


@pytest.mark.parametrize(
    ("look", "evacuations", "now", "wanted"),
    [
        (None, 1, 0.0, True),
        (None, None, 0.0, False),  # memory of it still goes offline
        (Look(1, 1, 0.0, True), 1, 999.0, False),
        (Look(1, 1, 0.0, True), 2, 0.0, True),
        (Look(1, 1, 0.0, True), None, 0.0, False),
        (Look(1, 1, 0.0, False), 1, 59.0, False),
        (Look(1, 1, 0.0, False), 1, 60.0, True),
        (Look(1, plan.ATTEMPTS, 0.0, False), 1, 999.0, False),
        (Look(1, plan.ATTEMPTS, 0.0, False), 2, 0.0, True),
    ],
)
def test_when_to_look(look: Look | None, evacuations: int | None, now: float, wanted: bool) -> None:
    assert plan.due(look, evacuations, now, 60.0) is wanted


def test_what_the_kernel_keeps_of_a_node_is_always_elsewhere() -> None:
    assert plan.looked(None, 1, 5.0, left=10, kept=10) == Look(1, 1, 5.0, True)
    assert plan.looked(None, 1, 5.0, left=11, kept=10) == Look(1, 1, 5.0, False)


def test_attempts_count_anew_when_memory_went_offline_again() -> None:
    first = plan.looked(None, 1, 5.0, left=11, kept=10)
    assert plan.looked(first, 1, 65.0, left=11, kept=10).attempt == 2
    assert plan.looked(first, 2, 65.0, left=11, kept=10).attempt == 1


def test_outcomes_add_up() -> None:
    assert Outcome(1, 2, ("a",)) + Outcome(3, 4, ("b",)) == Outcome(4, 6, ("a", "b"))
