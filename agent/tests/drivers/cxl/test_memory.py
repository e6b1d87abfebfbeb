"""Reading of memory blocks and nodes from a copied tree, and the bound of taking memory offline."""

from pathlib import Path

import pytest

from pondstack.domain.errors import DeviceFailed, HostUnusable
from pondstack_agent.drivers.cxl import privileged
from pondstack_agent.drivers.cxl.memory import MEMORY, NODES, Blocks, StuckOnline
from pondstack_agent.drivers.cxl.sysfs import Sysfs

BLOCK = 128 << 20


def put(root: Path, **attributes: str) -> None:
    """Write attributes, `__` for a slash."""
    for name, text in attributes.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two nodes with CPUs, a pool's node 2 with two blocks (of an emulated host's 6.12, with a node more)."""
    put(tmp_path / MEMORY, block_size_bytes="8000000", auto_online_blocks="offline")
    put(tmp_path / MEMORY, memory326__state="online", memory327__state="offline")
    put(tmp_path / NODES, online="0-2", has_cpu="0-1")
    put(tmp_path / NODES, node0__distance="10 21 30", node1__distance="21 10 20")
    return tmp_path


@pytest.fixture
def blocks(tree: Path) -> Blocks:
    return Blocks(Sysfs(tree), wait=lambda _seconds: None)


def test_a_range_is_the_blocks_that_exist(blocks: Blocks) -> None:
    assert blocks.size_bytes == BLOCK
    assert blocks.of(326 * BLOCK, 3 * BLOCK) == [f"{MEMORY}/memory326", f"{MEMORY}/memory327"]
    assert [blocks.is_online(block) for block in blocks.of(326 * BLOCK, 2 * BLOCK)] == [True, False]


def test_the_distance_is_from_the_nearest_cpus(blocks: Blocks) -> None:
    assert blocks.distance(2) == 20


def test_the_distance_follows_the_order_of_nodes_that_are_online(tree: Path, blocks: Blocks) -> None:
    put(tree / NODES, online="0,4", has_cpu="0", node0__distance="10 17")
    assert blocks.distance(4) == 17
    with pytest.raises(DeviceFailed, match="no memory online"):
        blocks.distance(2)


@pytest.mark.parametrize("node", [1, -1])
def test_a_node_with_cpus_is_refused(blocks: Blocks, node: int) -> None:
    assert blocks.node(2, "dax0.1") == 2
    with pytest.raises(HostUnusable, match=r"dax0.1 belongs to node .* node_with_cpus"):
        blocks.node(node, "dax0.1")


def test_memory_that_stays_in_use_is_stuck_after_its_attempts(
    blocks: Blocks, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's refusal is the real one's; that it is asked so often is what this shows."""
    asked: list[list[str]] = []

    def refuse(folders: list[str], seconds: float) -> tuple[list[str], str]:
        asked.append(folders)
        return [], f"pages still move after {seconds:g} s"

    monkeypatch.setattr(privileged, "offline_blocks", refuse)
    with pytest.raises(StuckOnline, match=r"allocation a .* 1 of 2 memory blocks \(memory326\).*3 attempts \(pages"):
        blocks.offline(blocks.of(326 * BLOCK, 2 * BLOCK), "allocation a", attempts=3, seconds=7)
    assert asked == [[str(tree / MEMORY / "memory326")]] * 3


def test_an_unreadable_attribute_is_named(tree: Path) -> None:
    with pytest.raises(DeviceFailed, match=r"cannot read .*nothing/size \(No such file"):
        Sysfs(tree).number("nothing/size")
    put(tree, wrong="many")
    with pytest.raises(DeviceFailed, match="'many', not a number"):
        Sysfs(tree).number("wrong")


@pytest.mark.parametrize(("text", "wanted"), [("", set()), ("0", {0}), ("0-2,5", {0, 1, 2, 5})])
def test_lists_of_numbers(tree: Path, text: str, wanted: set[int]) -> None:
    put(tree, list=text)
    assert Sysfs(tree).cpus("list") == wanted
