"""The untouched-memory figure of a real guest, from outside, against what the guest wrote (issue: within 2 %)."""

import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pondstack_agent.qemu.process import vcpu_threads
from pondstack_agent.records import Records
from pondstack_agent.telemetry import untouched
from pondstack_agent.telemetry.access import AccessLook
from pondstack_agent.telemetry.damon import Damon
from pondstack_agent.telemetry.memory import MemoryLook
from pondstack_agent.telemetry.outbox import Outbox

from .figures import Figures
from .qemu import Files
from .small_guest import MIB, SmallGuest

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(600)]

UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
EXACT = 0.02
BOOT_SECONDS, WRITE_SECONDS = 300.0, 120.0
WRITES = {1: 96, 2: 64}
"""MiB that the guest is told to write on its nodes without CPUs."""
FRESH_MIB = 32
BACKENDS: list[dict[str, object]] = [
    {"qom-type": "memory-backend-ram", "id": "ram-node0", "size": 320 * MIB},
    {"qom-type": "memory-backend-ram", "id": "ram-node1", "size": 192 * MIB},
    {"qom-type": "memory-backend-memfd", "id": "ram-node2", "size": 160 * MIB, "share": True},
]


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.night)], ids=["small-pages", "huge-pages"]
)
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallGuest]:
    """A guest that has booted and was told nothing yet."""
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        pytest.skip("needs root, and the packages of tools/packages.txt: run tools/setup.sh")
    folder = tmp_path_factory.mktemp("guest")
    with SmallGuest(Files.built(), folder, BACKENDS, huge_pages=request.param) as made:
        made.wait_ready(BOOT_SECONDS)
        yield made


def look(guest: SmallGuest) -> list[untouched.Figure]:
    found = untouched.measure(guest.pid, untouched.groups(guest.pid))
    assert [(figure.nodes, figure.reason) for figure in found] == [((0,), ""), ((1,), ""), ((2,), "")]
    return found


def test_the_figure_is_what_the_guest_wrote(guest: SmallGuest, figures: Figures) -> None:
    """Private and shared memory, node by node; what the guest touched by booting was measured before.

    Where the kernel gave huge pages, the figure says for how much: by no more than that it may be blurred.
    """
    assert len(vcpu_threads(guest.pid)) == 1
    before = look(guest)
    for node, mib in WRITES.items():
        guest.write(node, mib, WRITE_SECONDS)
    started = time.thread_time()
    after = look(guest)
    figures.add("a look at a guest of 672 MiB", (time.thread_time() - started) * 1000, "ms CPU")
    for node, mib in WRITES.items():
        first, last, huge = (
            item or 0 for item in (before[node].touched_bytes, after[node].touched_bytes, after[node].huge_bytes)
        )
        wrote = (last - first) / MIB
        kind = f"of {huge / MIB:.0f} MiB huge" if huge else "no huge pages"
        figures.add(f"node {node}, {kind}: touched by booting", first / MIB, "MiB")
        figures.add(f"node {node}, {kind}: said for {mib} MiB written", wrote, "MiB", "" if huge else "within 2 %")
        assert last >= mib * MIB * (1 - EXACT), "the figure is never less than what the guest touched"
        if not huge:
            assert abs(wrote - mib) <= EXACT * mib


def test_samples_of_the_guest_have_all_nodes(guest: SmallGuest) -> None:
    outbox = Outbox(lambda: 0.0)
    MemoryLook(outbox, lambda: {UUID: guest.pid}).run()
    found = {(item.metric, item.node): item.mean for item in outbox.take()}
    assert found["memory_mib", None] == 672
    for node, size in enumerate((320, 192, 160)):
        left = found["untouched_mib", node]
        assert left is not None
        assert found["memory_mib", node] == size
        assert 0 < left < size


def test_what_the_guest_uses_is_hot(guest: SmallGuest, figures: Figures, tmp_path: Path) -> None:
    """The guest writes afresh on node 2, in small pages; what it had written on node 1 is cold."""
    outbox = Outbox(iter(range(0, 10**9, 3600)).__next__)
    damon = Damon(Records(tmp_path), 60.0, threading.Event())  # not asked: the guest is one of TCG
    scan = AccessLook(outbox, 1800.0, 100.0, damon, running=lambda: {UUID: guest.pid})
    scan.run()
    outbox.take()
    guest.write(2, FRESH_MIB, WRITE_SECONDS)
    scan.run()
    found = {(item.metric, item.node): item.mean or 0.0 for item in outbox.take()}
    for name in ("hot_mib", "cold_mib"):
        for node in (1, 2):
            figures.add(f"access scan after {FRESH_MIB} MiB on node 2: {name}, node {node}", found[name, node], "MiB")
    figures.add("access scan: its cost", found["scan_cpu_seconds", None] * 1000, "ms CPU")
    assert FRESH_MIB * 0.95 <= found["hot_mib", 2] <= FRESH_MIB + 8
    assert found["cold_mib", 2] >= WRITES[2] * 0.9
    assert found["hot_mib", 1] < found["cold_mib", 1]
