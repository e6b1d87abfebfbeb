"""Writes pages to a mirror until it is killed. Run as `mirror_process.py PATH SEED`.

One JSON line on standard output per flush: the versions by page that are durable then.
"""

import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from pondstack_rdma.store.mirror.disk import FileDisk, Survives
from pondstack_rdma.store.mirror.mirror import Mirror
from pondstack_rdma.store.worker import Worker
from rdma.tests.store.test_mirror_crash import LIMITS, PAGES, SIZE, content


def main(path: str, seed: int) -> None:
    """Write."""
    dice = random.Random(seed)
    mirror = Mirror(FileDisk(path, SIZE, Survives.PROCESS), PAGES, LIMITS)
    worker = Worker("writer", mirror.turn)
    mirror.on_work = worker.wake
    versions = dict.fromkeys(range(PAGES), 0)
    while True:
        for _ in range(dice.randrange(1, 20)):
            page = dice.randrange(PAGES)
            versions[page] += 1
            mirror.put(page, versions[page], content(page, versions[page]))
        mirror.flush(30.0)
        print(json.dumps({page: version for page, version in versions.items() if version}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
