"""Lenders killed with -9 under load: no page may be wrong or lost. `make robustness-rdma`.

Real lender processes, threads that write and read all the time and check each page they read. After each kill the pages
of the dead lender are placed anew, on what is left and on a lender that is started for it; that is the time to recover.
At the end every page is read from the lenders and, once more, from the mirror alone. Seeded: which lender, when, and
what each thread does; the interleaving of threads is the machine's. Exits 0 only when nothing was wrong.
"""

import argparse
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pondstack.domain.errors import PondError
from pondstack_rack.wait import wait_until
from pondstack_rdma.base import Transport
from pondstack_rdma.sealing import PageSealer, new_key
from pondstack_rdma.shm import ShmTransport
from pondstack_rdma.store.leased_region import Lease
from pondstack_rdma.store.mirror.disk import FileDisk
from pondstack_rdma.store.mirror.mirror import Mirror, MirrorLimits, layout_of
from pondstack_rdma.store.mover import Mover
from pondstack_rdma.store.pages import RemotePages
from pondstack_rdma.store.peer import Retry
from pondstack_rdma.store.settings import Settings
from pondstack_rdma.store.threads import WorkerThreads
from pondstack_rdma.tcp import TcpTransport

from .harness import DEADLINE_SECONDS, PAGE, LenderProcess

LENDERS = 3
LEASE_PAGES = 1024
"""A lease has room for all pages: 4 MiB."""

TIMEOUT_SECONDS = 2.0
LIMITS = MirrorLimits(queue_pages=256, batch_pages=64, patience_seconds=DEADLINE_SECONDS)
_LOOK_SECONDS = 0.005
"""Between looks for a recovery: how exact its time is."""
SETTINGS = Settings(Retry(0.05, 0.5), grace_seconds=0.05, probe_seconds=0.2)


@dataclass(frozen=True)
class Options:
    """Of one run."""

    kills: int
    seed: int
    driver: str
    threads: int = 4
    pages: int = 1024
    load_seconds: float = 0.5
    """At most so long there is load before a kill."""
    sealed: bool = True

    @property
    def command(self) -> str:
        """What runs the same again."""
        return f"make robustness-rdma KILLS={self.kills} SEED={self.seed} DRIVER={self.driver}"


@dataclass
class Result:
    """What happened."""

    recoveries: list[float] = field(default_factory=list)
    """Seconds from each kill until every page is with a living lender."""
    wrong: list[str] = field(default_factory=list)
    reads: int = 0
    writes: int = 0
    mirror_reads: int = 0
    at_stake: int = 0
    """Pages that were with a lender when it was killed."""


class Rack:
    """Lender processes by name; a name comes back with another process."""

    def __init__(self, driver: str, folder: Path) -> None:
        self._driver, self._folder = driver, folder
        self._lock = threading.Lock()
        self._started = 0
        self.running: dict[str, LenderProcess] = {}
        self.leases: dict[str, Lease] = {}

    def start(self) -> Lease:
        """Start a lender, and have it lend."""
        with self._lock:
            self._started += 1
            folder = self._folder / str(self._started)
            folder.mkdir()
            name = min({f"lender{number}" for number in range(1, LENDERS + 1)} - self.running.keys())
            process = self.running[name] = LenderProcess(self._driver, folder)
            ticket, key = process.lend("host1", LEASE_PAGES * PAGE)
            transport: Transport = ShmTransport(folder) if self._driver == "shm" else TcpTransport()
            lease = Lease(name, key, partial(transport.connect, ticket, TIMEOUT_SECONDS))
            self.leases[name] = lease
            return lease

    def kill(self, name: str) -> Lease:
        """Kill a lender with -9; returns the lease that is dead now."""
        with self._lock:
            process = self.running.pop(name)
            process.kill()
            process.close()
            return self.leases.pop(name)

    def close(self) -> None:
        """End all."""
        for name in list(self.running):
            self.kill(name)


class Load:
    """One thread: its pages are those whose number leaves `index`, divided by `threads`; it knows what they are."""

    def __init__(self, pages: RemotePages, options: Options, index: int, result: Result) -> None:
        self._pages = pages
        self._mine = range(index, options.pages, options.threads)
        self._dice = random.Random(f"{options.seed} {index}")
        self._result = result
        self.model: dict[int, bytes] = {}
        self.reads = self.writes = 0
        self.stop = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name=f"load {index}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> None:
        """End, and wait for it."""
        self.stop.set()
        self._thread.join(DEADLINE_SECONDS)
        if not self._ended:
            self._result.wrong.append(f"{self._thread.name} ended early, or not at all")

    def _run(self) -> None:
        try:
            while not self.stop.is_set():
                self._step()
            self._ended = True
        except PondError as error:
            self._result.wrong.append(f"an access failed: {error!r}")

    def _step(self) -> None:
        pages = self._dice.sample(self._mine, self._dice.choice((1, 1, 1, 4, 16)))
        if self._dice.random() < 0.5:
            contents = {page: self._dice.randbytes(32) * (PAGE // 32) for page in pages}
            self._pages.write_many(contents)
            self.model |= contents
            self.writes += len(pages)
        else:
            self.check(pages, self._pages.read_many(pages))
            self.reads += len(pages)

    def check(self, pages: Sequence[int], contents: Sequence[bytes]) -> None:
        """Compare."""
        for page, content in zip(pages, contents, strict=True):
            if content != self.model.get(page, bytes(PAGE)):
                self._result.wrong.append(f"page {page} is not what was written last")

    def check_all(self) -> None:
        """Read all pages, from the lenders and from the mirror."""
        for page in self._mine:
            self.check([page], [self._pages.read(page)])
            if page in self.model:
                self.check([page], [self._pages.from_mirror(page)])


def run(options: Options, folder: Path, tell: bool = False) -> Result:
    """Do it."""
    result, dice = Result(), random.Random(options.seed)
    rack = Rack(options.driver, folder)
    disk = FileDisk(folder / "mirror", layout_of(options.pages, LIMITS).size_bytes)
    sealer = PageSealer(new_key(), "a VM", options.pages) if options.sealed else None
    pages = RemotePages(options.pages, Mirror(disk, options.pages, LIMITS), sealer, SETTINGS)
    running = WorkerThreads(pages, Mover(pages))
    loads = [Load(pages, options, index, result) for index in range(options.threads)]
    try:
        for _ in range(LENDERS):
            pages.add(rack.start())
        assert wait_until(lambda: pages.places.room_pages() == LENDERS * LEASE_PAGES, DEADLINE_SECONDS)
        for load in loads:
            load.start()
        for kill in range(options.kills):
            time.sleep(dice.random() * options.load_seconds)  # the load, not a wait for anything
            _kill(rack, pages, f"lender{dice.randint(1, LENDERS)}", result)
            if tell:
                print(f"  kill {kill + 1}: recovered after {result.recoveries[-1]:.3f} s", flush=True)
        for load in loads:
            load.join()
        assert wait_until(lambda: not pages.stranded(), DEADLINE_SECONDS)
        for load in loads:
            load.check_all()
        _count(result, loads, pages)
    finally:
        for load in loads:
            load.stop.set()
        running.close(DEADLINE_SECONDS)
        disk.close()
        rack.close()
    return result


def _kill(rack: Rack, pages: RemotePages, name: str, result: Result) -> None:
    result.at_stake += sum(each.used for each in pages.places.holdings() if each.lease.lender == name)
    begun = time.monotonic()
    dead = rack.kill(name)
    # Recovered: who is killed has been noticed, and every page that was written is with a lender that lives.
    assert wait_until(lambda: pages.places.down(name), DEADLINE_SECONDS, _LOOK_SECONDS)
    pages.reclaim(dead)
    assert wait_until(lambda: pages.wait_free(dead, 0.01) and not pages.stranded(), DEADLINE_SECONDS, _LOOK_SECONDS)
    result.recoveries.append(time.monotonic() - begun)
    fresh = rack.start()
    pages.add(fresh)
    assert wait_until(lambda: not pages.places.down(fresh.lender), DEADLINE_SECONDS)


def _count(result: Result, loads: Sequence[Load], pages: RemotePages) -> None:
    result.reads, result.writes = (sum(getattr(load, name) for load in loads) for name in ("reads", "writes"))
    result.mirror_reads = pages.counts.values["mirror_reads"]
    lost = pages.counts.values["lost"]
    if lost:
        result.wrong.append(f"{lost} pages were lost")


def report(options: Options, result: Result) -> str:
    """Return the last lines of a run."""
    recoveries = result.recoveries
    return "\n".join(
        [
            *(f"wrong: {text}" for text in result.wrong[:20]),
            f"{options.driver}: {len(recoveries)} lenders killed with {result.at_stake} pages in their memory, under "
            f"{result.writes} writes and {result.reads} reads of {options.threads} threads",
            f"  read from the mirror meanwhile: {result.mirror_reads} pages",
            f"  time to recover: median {statistics.median(recoveries):.3f} s, worst {max(recoveries):.3f} s",
            f"  wrong or lost pages: {len(result.wrong)}   (seed {options.seed}; again: {options.command})",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when no page was wrong or lost, over each driver."""
    parser = argparse.ArgumentParser(prog="make robustness-rdma", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50, help="how often a lender is killed with -9 (KILLS)")
    parser.add_argument("--seed", type=int, default=1, help="what all choices follow from (SEED)")
    parser.add_argument("--driver", choices=["shm", "tcp", "all"], default="all", help="transport (DRIVER)")
    given = parser.parse_args(arguments)
    texts, good = [], True
    for driver in ("shm", "tcp") if given.driver == "all" else (given.driver,):
        options = Options(given.kills, given.seed, driver)
        print(f"{driver}: seed {options.seed}; the same again: {options.command}", flush=True)
        with tempfile.TemporaryDirectory(prefix="pondstack-kills-") as folder:
            result = run(options, Path(folder), tell=True)
        texts.append(report(options, result))
        good = good and not result.wrong and len(result.recoveries) == options.kills
    print("\n" + "\n".join(texts))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
