"""Lenders killed with -9 under load: no page may be wrong or lost. `make robustness-rdma`.

Real lender processes, and a block device of the data plane that has pages in their memory; threads write and read all
the time and check each page they read. After each kill another lender is started in its place. At the end every page is
read once more, and again when all lenders are dead: from the mirror alone. Seeded: which lender, when, and what each
thread does; the interleaving of threads is the machine's. Exits 0 only when nothing was wrong.
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
from pathlib import Path

from pondstack_rack.wait import wait_until
from pondstack_rdma.data_plane import PROGRAM

from .data_plane.exported.client import Nbd, NbdError, connect
from .data_plane.lenders import Lender
from .data_plane.processes import BLOCK, BlockPlane
from .harness import DEADLINE_SECONDS, PAGE

LENDERS = 3
"""Each has room for all pages."""

MOST_PAGES = 16
"""Of one command."""

_LOOK_SECONDS = 0.02
"""Between looks whether a kill was noticed: how exact its time is."""


@dataclass(frozen=True)
class Options:
    """Of one run."""

    kills: int
    seed: int
    driver: str
    threads: int = 4
    mib: int = 4
    load_seconds: float = 0.5
    """At most so long there is load before a kill."""
    sealed: bool = True

    @property
    def command(self) -> str:
        """What runs the same again."""
        return f"make robustness-rdma KILLS={self.kills} SEED={self.seed} DRIVER={self.driver}"

    @property
    def pages(self) -> int:
        """Of the device."""
        return self.mib * 2**20 // PAGE


@dataclass
class Result:
    """What happened."""

    noticed: list[float] = field(default_factory=list)
    """Seconds from each kill until the data plane asks the dead lender for nothing any more."""
    wrong: list[str] = field(default_factory=list)
    reads: int = 0
    writes: int = 0
    lender_reads: int = 0
    mirror_reads: int = 0
    at_stake: int = 0
    """Pages that were with a lender when it was killed."""


class Lenders:
    """Lender processes whose memory the device uses; who is killed has a successor of another name."""

    def __init__(self, plane: BlockPlane, driver: str, folder: Path) -> None:
        self._plane, self._driver, self._folder = plane, driver, folder
        self._started = 0
        self.running: list[Lender] = []

    def start(self) -> None:
        """Start one, and have it lend."""
        self._started += 1
        lender = Lender(self._folder, f"lender{self._started}", self._driver, block=BLOCK)
        self.running.append(lender)
        lender.lend(self._plane)

    def kill(self, index: int) -> Lender:
        """Kill one with -9."""
        lender = self.running.pop(index)
        lender.process.kill()
        lender.close()
        return lender

    def close(self) -> None:
        """End all."""
        while self.running:
            self.kill(0)


class Load:
    """One thread with its part of the device, of which it knows what the pages are."""

    def __init__(self, path: Path, options: Options, index: int, result: Result) -> None:
        self._path, count = path, options.pages // options.threads
        self._mine = range(index * count, (index + 1) * count)
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
            with connect(self._path) as link:
                while not self.stop.is_set():
                    self._step(link)
            self._ended = True
        except (NbdError, OSError) as error:
            self._result.wrong.append(f"an access failed: {error!r}")

    def _step(self, link: Nbd) -> None:
        count = self._dice.choice((1, 1, 1, 4, MOST_PAGES))
        first = self._dice.randrange(self._mine.start, self._mine.stop - count + 1)
        pages = range(first, first + count)
        if self._dice.random() < 0.5:
            contents = {page: self._dice.randbytes(32) * (PAGE // 32) for page in pages}
            link.write(first * PAGE, b"".join(contents.values()))
            self.model |= contents
            self.writes += count
        else:
            self._check(link, pages)
            self.reads += count

    def _check(self, link: Nbd, pages: range) -> None:
        found = link.read(pages.start * PAGE, len(pages) * PAGE)
        for at, page in enumerate(pages):
            if found[at * PAGE : (at + 1) * PAGE] != self.model.get(page, bytes(PAGE)):
                self._result.wrong.append(f"page {page} is not what was written last")

    def check_all(self) -> None:
        """Read all pages."""
        with connect(self._path) as link:
            for first in range(self._mine.start, self._mine.stop, MOST_PAGES):
                self._check(link, range(first, min(first + MOST_PAGES, self._mine.stop)))


def run(options: Options, folder: Path, tell: bool = False, program: Path = PROGRAM) -> Result:
    """Do it, in a folder whose name is short: an address of a Unix socket has 107 bytes."""
    result, dice = Result(), random.Random(options.seed)
    plane = BlockPlane(program, folder / "plane")
    lenders = Lenders(plane, options.driver, folder)
    loads = [Load(plane.socket, options, index, result) for index in range(options.threads)]
    try:
        plane.start()
        plane.await_ready()
        plane.export(options.mib, sealed=options.sealed)
        for _ in range(LENDERS):
            lenders.start()
        for load in loads:
            load.start()
        for kill in range(options.kills):
            time.sleep(dice.random() * options.load_seconds)  # the load, not a wait for anything
            _kill(plane, lenders, dice.randrange(LENDERS), result)
            if tell:
                print(f"  kill {kill + 1}: noticed after {result.noticed[-1]:.3f} s", flush=True)
        for load in loads:
            load.join()
        _check_all(plane, loads, result)
        lenders.close()
        _check_all(plane, loads, result)
    finally:
        for load in loads:
            load.stop.set()
        lenders.close()
        plane.close()
    return result


def _kill(plane: BlockPlane, lenders: Lenders, index: int, result: Result) -> None:
    result.at_stake += lenders.running[index].used(plane)
    begun = time.monotonic()
    dead = lenders.kill(index)

    def states() -> set[str]:
        return {lease["state"] for lease in plane.device()["leases"] if lease["lender"] == dead.name}

    assert wait_until(lambda: states() <= {"lost"}, DEADLINE_SECONDS, _LOOK_SECONDS), plane.device()
    result.noticed.append(time.monotonic() - begun)
    plane.ask(verb="leave", block=BLOCK, lender=dead.name, numbers=[key.number for key in dead.keys])
    lenders.start()


def _check_all(plane: BlockPlane, loads: Sequence[Load], result: Result) -> None:
    for load in loads:
        load.check_all()
    result.reads, result.writes = (sum(getattr(load, name) for load in loads) for name in ("reads", "writes"))
    store = plane.device()["store"]
    result.lender_reads, result.mirror_reads = store["lender_reads"], store["mirror_reads"]
    if store["corrupt"]:
        result.wrong.append(f"{store['corrupt']} pages came back changed")


def report(options: Options, result: Result) -> str:
    """Return the last lines of a run."""
    noticed = result.noticed or [0.0]
    return "\n".join(
        [
            *(f"wrong: {text}" for text in result.wrong[:20]),
            f"{options.driver}: {len(result.noticed)} lenders killed with {result.at_stake} pages in their memory, "
            f"under {result.writes} writes and {result.reads} reads of {options.threads} threads",
            f"  read from lenders: {result.lender_reads} pages, from the mirror: {result.mirror_reads}",
            f"  time until it was noticed: median {statistics.median(noticed):.3f} s, worst {max(noticed):.3f} s",
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
        with tempfile.TemporaryDirectory(prefix="ps-kills-") as folder:
            result = run(options, Path(folder), tell=True)
        texts.append(report(options, result))
        good = good and not result.wrong and len(result.noticed) == options.kills
    print("\n" + "\n".join(texts))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
