"""Crashes of the borrower: what was durable is found, what was torn is detected, nothing else is given out."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from pondstack_rdma.store.mirror.disk import FileDisk, Survives
from pondstack_rdma.store.mirror.mirror import Mirror, MirrorLimits, layout_of
from rdma.tests.disks import MemoryDisk
from rdma.tests.harness import PAGE, child_environment, pattern

PAGES = 24
LIMITS = MirrorLimits(queue_pages=64, batch_pages=5, patience_seconds=0.0)
SIZE = layout_of(PAGES, LIMITS).size_bytes
SEEDS = range(20181, 20241)


def content(page: int, version: int) -> bytes:
    """What is written as that version; half of the pages repeat, so that equal contents meet."""
    return pattern(1000 * page + version, PAGE) if page % 2 else bytes([version % 7 + 1]) * PAGE


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crash_of_the_host(seed: int) -> None:
    """Several crashes in a row, each amid writes; the disk keeps any sectors of what was not synced."""
    dice = random.Random(seed)
    disk = MemoryDisk(SIZE)
    durable, put = dict.fromkeys(range(PAGES), 0), dict.fromkeys(range(PAGES), 0)
    for _ in range(4):
        mirror = Mirror(disk, PAGES, LIMITS)
        for page in range(PAGES):
            found = mirror.version(page)
            assert durable[page] <= found <= put[page], (seed, page)
            assert found == 0 or mirror.get(page, found) == content(page, found), (seed, page)
            newest = mirror.torn.get(page, found)
            assert found <= newest <= put[page], (seed, page)
            durable[page], put[page] = found, max(put[page], newest)
        for _ in range(dice.randrange(40)):
            page = dice.randrange(PAGES)
            put[page] += 1
            mirror.put(page, put[page], content(page, put[page]))
            if dice.random() < 0.3:
                mirror.turn()
        for page in range(PAGES):
            if disk_has(mirror, page):
                durable[page] = disk_has(mirror, page)
        disk.writes_left = dice.randrange(12)  # and amid a batch
        mirror.turn()
        disk = disk.crash(dice)


def disk_has(mirror: Mirror, page: int) -> int:
    """The version that the mirror takes for durable."""
    return mirror._versions[page]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_crash_of_the_process(tmp_path: Path, seed: int) -> None:
    """A real process is killed while it writes; what its `flush` had returned for is found."""
    path = tmp_path / "mirror"
    script = Path(__file__).with_name("mirror_process.py")
    process = subprocess.Popen(
        [sys.executable, str(script), str(path), str(seed)],
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(),
    )
    assert process.stdout
    durable: dict[int, int] = {}
    try:
        for _ in range(random.Random(seed).randrange(5, 25)):
            durable |= {int(page): version for page, version in json.loads(process.stdout.readline()).items()}
    finally:
        process.kill()
        process.wait()
    rest = process.stdout.read().splitlines()  # flushed, and told before the kill
    for line in rest:
        if line.endswith("}"):
            durable |= {int(page): version for page, version in json.loads(line).items()}
    process.stdout.close()
    disk = FileDisk(path, SIZE, Survives.PROCESS)
    mirror = Mirror(disk, PAGES, LIMITS)
    assert durable, f"seed {seed}: nothing was written"
    for page, version in durable.items():
        assert mirror.version(page) >= version, (seed, page)
        assert mirror.get(page, mirror.version(page)) == content(page, mirror.version(page)), (seed, page)
    disk.close()
