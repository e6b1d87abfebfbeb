"""What the kernel's texts say of a process's pages and policies."""

from pathlib import Path

import pytest

from pondstack_agent.host import cpuset, numa

MAPS = """\
55d0a000-55d0c000 r--p 00000000 08:01 10 /usr/bin/qemu
7f0000000000-7f0010000000 rw-p 00000000 00:00 0
7f0020000000-7f0020400000 rw-s 00000000 00:0f 11 /anon_hugepage (deleted)
7f0030000000-7f0030001000 rw-p 00000000 00:00 0
"""
NUMA_MAPS = """\
55d0a000 default file=/usr/bin/N1=5 mapped=2 N0=1 N1=1 kernelpagesize_kB=4
7f0000000000 bind:1 anon=300 dirty=300 N0=44 N1=256 kernelpagesize_kB=4
7f0020000000 bind=static:1 file=/anon_hugepage\\040(deleted) huge dirty=2 N1=2 kernelpagesize_kB=2048
7f0030000000 prefer (many):0,2-3 anon=1 N0=1 kernelpagesize_kB=4
7f0040000000 default anon=1 N1=1 kernelpagesize_kB=4
"""


def test_mappings() -> None:
    text, memory, huge, other = numa.parse(MAPS, NUMA_MAPS)
    assert (text.policy_nodes, text.pages) == (frozenset(), {0: 1, 1: 1})
    assert (memory.start, memory.end, memory.policy_nodes) == (0x7F0000000000, 0x7F0010000000, {1})
    assert (huge.page_kib, huge.policy_nodes, huge.kib_on(1)) == (2048, {1}, 4096)
    assert other.policy_nodes == {0, 2, 3}
    assert [item.writable for item in (text, memory, huge, other)] == [False, True, True, True]


def test_pages_count_in_4_kib() -> None:
    assert numa.pages_on(numa.parse(MAPS, NUMA_MAPS), 1) == 1 + 256 + 1024


def test_mappings_on_one_node() -> None:
    for node in range(4):
        wanted = [region for region in numa.parse(MAPS, NUMA_MAPS) if region.pages.get(node)]
        assert numa.parse(MAPS, NUMA_MAPS, node) == wanted
    assert [len(numa.parse(MAPS, NUMA_MAPS, node)) for node in (0, 1, 5)] == [3, 3, 0]


def test_pages_of_mappings_that_maps_does_not_have_count_too() -> None:
    """The process split a mapping between the two looks."""
    assert "7f0040000000" not in MAPS
    assert numa.count(NUMA_MAPS, 1) == 1 + 256 + 1024 + 1
    assert numa.count(NUMA_MAPS, 5) == 0
    [split] = [line for line in NUMA_MAPS.splitlines() if line.startswith("7f0040000000")]
    assert numa.uses(split, 1)


@pytest.mark.parametrize(
    ("line", "used"),
    [
        ("7f0030000000 bind:1 anon=1 N0=1", True),  # nothing there yet, but a fault would be served from there
        ("7f0030000000 bind:0 anon=1 N1=1", True),
        ("7f0030000000 bind:0 anon=1 N0=1 N11=4", False),
        ("7f0030000000 interleave:0-2", True),
        ("7f0030000000 default stack anon=1 N0=1", False),
    ],
)
def test_who_uses_a_node(line: str, used: bool) -> None:
    assert numa.uses(line, 1) is used


def test_a_policy_counts_where_the_cpuset_lets_it() -> None:
    """After its pages were moved by a cpuset of local nodes, a guest that prefers the pool's node still says so."""
    prefers = "7f0000000000 prefer (many):1 anon=2 N0=2 kernelpagesize_kB=4\n"
    assert numa.uses(prefers, 1)
    assert numa.uses(prefers, 1, {0, 1})
    assert not numa.uses(prefers, 1, {0})
    stayed = "7f0000000000 prefer (many):1 anon=2 N1=1 N0=1 kernelpagesize_kB=4\n"
    assert numa.uses(stayed, 1, {0})


def test_what_any_thread_may_have_is_allowed(tmp_path: Path) -> None:
    for thread, nodes in ((7, "0"), (8, "0,2-3")):
        (tmp_path / f"7/task/{thread}").mkdir(parents=True)
        (tmp_path / f"7/task/{thread}/status").write_text(
            f"Name:\tqemu\nMems_allowed:\t1\nMems_allowed_list:\t{nodes}\n"
        )
    (tmp_path / "7/task/9").mkdir()  # it has just ended
    assert cpuset.allowed(7, tmp_path) == {0, 2, 3}
    assert cpuset.allowed(6, tmp_path) is None
