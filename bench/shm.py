"""`make bench-shm`: pages of shared memory read and written through the transport, against memcpy of the same pages.

The pages are random ones of a region larger than the processor's caches; memcpy is a copy of the same offsets of this
process's own memory by memoryview, which is the least that Python can do. Rounds alternate, so that whatever else the
machine does meets both; the ratio within each round is one sample. `batch` has 16 pages a call, made beforehand.
"""

import argparse
import mmap
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.figures import Meter, spread
from pondstack_rdma.base import Link
from pondstack_rdma.model import Key, Read, Write
from pondstack_rdma.shm import NATIVE, ShmTransport
from pondstack_rdma.shm.native_link import ShmAccessType

TARGET = 1.5
PAGE = 4096
DEPTH = 16
PAGES_PER_ROUND = 1000
"""So few that most turns are not interrupted."""

KINDS = ("read", "write", "batch read", "batch write")


@dataclass(frozen=True)
class Setup:
    """A borrower of a region, and memory of its own that is as large."""

    link: Link
    key: Key
    own: memoryview
    page: bytearray


@contextmanager
def setup(region_mib: int, access_type: ShmAccessType | None) -> Iterator[Setup]:
    """Lend to ourselves: the lender takes no part in an access, so that it may be the same process."""
    size = region_mib * 2**20
    with tempfile.TemporaryDirectory(prefix="bench-shm-") as folder:
        transport = ShmTransport(folder, access_type)
        with transport.lend("bench") as lender:
            key = lender.export(lender.register(size), "host1")
            with transport.connect(lender.admit("host1"), 5.0) as link:
                link.open(key)
                # Of the same kind as the region: shared pages that are there.
                own = mmap.mmap(-1, size, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
                yield Setup(link, key, memoryview(own), bytearray(PAGE))


def copies(on: Setup, offsets: Sequence[int], kind: str) -> float:
    """Seconds that memcpy takes."""
    own, page, buffer = on.own, memoryview(on.page), on.page
    begun = time.perf_counter()
    if kind.endswith("read"):
        for offset in offsets:
            page[:] = own[offset : offset + PAGE]
    else:
        for offset in offsets:
            own[offset : offset + PAGE] = buffer
    return time.perf_counter() - begun


def accesses(on: Setup, offsets: Sequence[int], kind: str) -> float:
    """Seconds that the transport takes."""
    link, key, page = on.link, on.key, on.page
    if kind.startswith("batch"):
        operations = [Read(key, at, page) if kind.endswith("read") else Write(key, at, page) for at in offsets]
        batches = [operations[at : at + DEPTH] for at in range(0, len(operations), DEPTH)]
        begun = time.perf_counter()
        for batch in batches:
            link.batch(batch)
    elif kind == "read":
        begun = time.perf_counter()
        for offset in offsets:
            link.read_into(key, offset, page)
    else:
        begun = time.perf_counter()
        for offset in offsets:
            link.write(key, offset, page)
    return time.perf_counter() - begun


def measure(
    rounds: int, region_mib: int, seed: int, access_type: ShmAccessType | None
) -> dict[str, list[tuple[float, float]]]:
    """Return by kind the microseconds per page of transport and memcpy, of each round."""
    dice = random.Random(seed)
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    with setup(region_mib, access_type) as on, Meter("rounds", rounds) as meter:
        for number in range(rounds + 1):
            for kind in KINDS:
                offsets = [dice.randrange(region_mib * 2**20 // PAGE) * PAGE for _ in range(PAGES_PER_ROUND)]
                turns = [accesses, copies]
                order = turns if number % 2 else turns[::-1]  # who comes second finds some pages in the cache
                times = {turn: turn(on, offsets, kind) / PAGES_PER_ROUND * 1e6 for turn in order}
                if number:  # the first one warms up
                    found[kind].append((times[accesses], times[copies]))
            meter.show(number, "")
    return found


def report(found: dict[str, list[tuple[float, float]]], target: float | None) -> int:
    """Print figures; 0 when all of them hold the target."""
    good = True
    for kind, pairs in found.items():
        ratios = [ours / plain for ours, plain in pairs]
        verdict = ""
        if target is not None:
            held = statistics.median(ratios) <= target
            good = good and held
            verdict = f", target <= {target}: {'ok' if held else 'MISSED'}"
        print(
            f"{kind:<12} 4 KiB   us/page   ours {spread([ours for ours, _ in pairs], 2)}   "
            f"memcpy {spread([plain for _, plain in pairs], 2)}   ratio {spread(ratios, 2)}{verdict}"
        )
    return 0 if good else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 when the target holds."""
    parser = argparse.ArgumentParser(prog="make bench-shm", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=101, help="turns of either (ROUNDS)")
    parser.add_argument("--region-mib", type=int, default=256, help="of the region, more than the caches")
    parser.add_argument("--seed", type=int, default=1, help="of the offsets (SEED)")
    given = parser.parse_args(arguments)
    if NATIVE is None:
        print("the compiled part was not built: run `make setup` where gcc and python3-dev are")
        return 1
    print(f"region of {given.region_mib} MiB, {PAGES_PER_ROUND} random pages a turn, {given.rounds} turns")
    plain = measure(max(given.rounds // 5, 1), given.region_mib, given.seed, None)
    found = measure(given.rounds, given.region_mib, given.seed, NATIVE)
    print("\nwithout the compiled part:")
    report(plain, None)
    print("with it:")
    return report(found, TARGET)


if __name__ == "__main__":
    sys.exit(main())
