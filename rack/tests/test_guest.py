"""What is read from the guest's console, what contradicts the ledger, and what TCG needs."""

import dataclasses
import json

import pytest

from pondstack_rack.demo import demo
from pondstack_rack.services import image, tcg_qemu

CONSOLE = """
[    0.1] Linux
POND {"kind": "node", "node": 0, "cpulist": "0", "memtotal_kib": 223624, "distance": [10, 20]}
POND {"kind": "node", "node": 1, "cpulist": "", "memtotal_kib": 1032400, "distance": [20, 10]}
POND {"kind": "beat", "count": 7, "che
"""


def test_reports_are_read_and_a_torn_line_is_left_out() -> None:
    assert [node["node"] for node in image.console_lines(CONSOLE, "node")] == [0, 1]
    assert image.console_lines(CONSOLE, "beat") == []


@pytest.fixture
def facts() -> demo.Facts:
    return demo.Facts(
        host="host1",
        nodes=image.console_lines(CONSOLE, "node"),
        ledger={"host": "host1", "pool_mib": 1024, "slice_mib": 1024, "extents": [{"start": 3, "count": 1}]},
        placement={"pool": {"CUSTOM_POND_MEMORY_MB": 1024}, "host1": {"MEMORY_MB": 256}},
    )


def test_views_that_agree_pass(facts: demo.Facts) -> None:
    assert demo.check(facts) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"placement": {"host1": {"MEMORY_MB": 1280}}}, "Placement has 0 MiB of the pool, the ledger 1024"),
        ({"host": "host2"}, "Nova says host2, the ledger host1"),
        ({"nodes": image.console_lines(CONSOLE, "node")[:1]}, "the guest sees no CPU-less node"),
    ],
)
def test_views_that_differ_are_named(facts: demo.Facts, change: dict[str, object], said: str) -> None:
    assert any(said in line for line in demo.check(dataclasses.replace(facts, **change)))


def _node(number: int, mib: int) -> list[str]:
    return ["-object", json.dumps({"qom-type": "memory-backend-file", "id": f"ram-node{number}", "size": mib << 20})]


def test_nodes_behind_the_first_get_an_odd_size_and_the_total_follows() -> None:
    arguments = ["-m", "size=2359296k", *_node(0, 256), *_node(1, 1024), *_node(2, 1024), "-display", "none"]
    mended = tcg_qemu.mend(arguments)
    sizes = [json.loads(word)["size"] for word in mended if word.startswith("{")]
    assert sizes[0] == 256 << 20
    assert all(size % tcg_qemu.WORD_BYTES for size in sizes[1:])
    assert mended[1] == f"size={sum(sizes) // 1024}k"
    assert mended[-2:] == arguments[-2:]


def test_guests_without_such_nodes_and_probes_pass_unchanged() -> None:
    for arguments in (["-m", "size=262144k", *_node(0, 256)], ["-S", "-machine", "none", "-qmp", "stdio"]):
        assert tcg_qemu.mend(arguments) == arguments
