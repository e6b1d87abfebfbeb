"""`make bench-extension` on this machine, for seconds: it measures what needs no guest, and leaves nothing behind."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.extension import swap_areas
from bench.extension.memory_group import VERSION_1, VERSION_2
from pondstack_rack.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--rounds", "1", "--seconds", "0.1", "--shares", "50", "--ratios", "2", "--micro-mib", "8", "--passes", "1"]
SECONDS = 90.0


def bench(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start it; no guests."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "bench.extension",
        *SMALL,
        "--workloads",
        "",
        "--disk",
        str(folder),
    ]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, *words], cwd=ROOT, stdout=pipe, stderr=pipe, text=True)


def left(process: subprocess.Popen[str], folder: Path) -> list[str]:
    """Return what a run has left: swap areas, cgroups, mounts, files."""
    groups = [*VERSION_1.glob(f"pondstack-bench-{process.pid}-*"), *VERSION_2.glob(f"pondstack-bench-{process.pid}-*")]
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]
    swaps = swap_areas.areas(swap_areas.SWAPS.read_text())
    return [*swaps, *mounts, *map(str, groups), *map(str, folder.iterdir())]


@pytest.mark.faults
@pytest.mark.skipif(not swap_areas.ZRAM.exists(), reason="this kernel has no zram0")
@pytest.mark.skipif(bool(swap_areas.areas(swap_areas.SWAPS.read_text())), reason="the machine swaps")
def test_it_measures_and_leaves_nothing_also_when_it_is_interrupted(tmp_path: Path) -> None:
    """One test: there is one zram, and no swap area beside another."""
    whole = bench(tmp_path, "--parts", "faults,overcommit")
    try:
        out, err = whole.communicate(timeout=2 * SECONDS)
    finally:
        whole.terminate()
    assert whole.returncode == 0, out + err
    for text in (
        "userfaultfd floor",
        "zram swap",
        "swap file on disk",
        "slowdown over R = 1",
        "Remote memory is a tmpfs",
    ):
        assert text in out
    assert left(whole, tmp_path) == []

    for number in (signal.SIGINT, signal.SIGTERM):
        ended = bench(tmp_path, "--parts", "micro", "--rounds", "1000")
        try:
            assert wait_until(lambda: bool(swap_areas.areas(swap_areas.SWAPS.read_text())), SECONDS, 0.001)
            ended.send_signal(number)
            ended.communicate(timeout=SECONDS)
        finally:
            ended.kill()
        assert ended.returncode != 0
        assert left(ended, tmp_path) == []
