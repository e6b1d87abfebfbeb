"""`python -m tests.sim --histories N --seed S`: runs histories on all cores; the figures come last.

Exits 0 only when no history violated anything. One history alone is told step by step.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / name) for name in ("agent", "")]

import conftest  # noqa: E402, F401 (no eventlet, oslo.service's threading backend first, as for all tests)
from tests.sim.plan import draw  # noqa: E402
from tests.sim.report import Figures, Progress, command, story  # noqa: E402
from tests.sim.run import run  # noqa: E402
from tests.sim.shrink import shrink  # noqa: E402

CHUNK = 20
MOST_STORIES = 3


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__.split("\n\n")[0])
    parser.add_argument("--histories", type=int, default=1000, help="how many histories")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first; the others follow")
    parser.add_argument("--sql", action="store_true", help="with the real SQL ledger, on SQLite in memory; slow")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many at the same time")
    return parser.parse_args(words)


def _chunk(job: tuple[range, bool]) -> Figures:
    seeds, sql = job
    figures = Figures()
    for seed in seeds:
        figures.add(run(draw(seed), sql=sql))
    return figures


def _jobs(arguments: argparse.Namespace) -> Iterator[tuple[range, bool]]:
    end = arguments.seed + arguments.histories
    for start in range(arguments.seed, end, CHUNK):
        yield range(start, min(start + CHUNK, end)), arguments.sql


def _tell(seed: int, sql: bool) -> None:
    outcome = run(draw(seed), tracing=True, sql=sql)
    if outcome.code:
        print(story(outcome, shrink(outcome, lambda history: run(history, tracing=True, sql=sql))))
    else:
        print("\n".join(outcome.trace))


def main(words: list[str]) -> int:
    """Run; return the exit status."""
    arguments = _arguments(words)
    print(
        f"seeds {arguments.seed} to {arguments.seed + arguments.histories - 1}; one of them: {command(arguments.seed)}"
    )
    started = time.monotonic()
    figures, progress = Figures(), Progress(arguments.histories)
    with multiprocessing.get_context("fork").Pool(arguments.processes) as pool:
        for part in pool.imap_unordered(_chunk, _jobs(arguments)):
            figures.merge(part)
            progress.show(figures, time.monotonic() - started)
    progress.end()
    seconds = time.monotonic() - started
    told = sorted(figures.failed_seeds)[:MOST_STORIES] or ([arguments.seed] if arguments.histories == 1 else [])
    for seed in told:
        _tell(seed, arguments.sql)
    print(figures.text(seconds, arguments.seed))
    return 1 if figures.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
