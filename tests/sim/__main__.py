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

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / name) for name in ("agent", "nova_plugins", "")]

import conftest  # noqa: E402, F401 (no eventlet, oslo.service's threading backend first, as for all tests)
from tests.sim.guests import plan as guests  # noqa: E402
from tests.sim.heirs import plan as heirs  # noqa: E402
from tests.sim.holding import plan as holding  # noqa: E402
from tests.sim.lending import plan as lending  # noqa: E402
from tests.sim.mitigation import plan as mitigation  # noqa: E402
from tests.sim.mitigation import world as mitigated  # noqa: E402
from tests.sim.plan import History, draw  # noqa: E402
from tests.sim.plans import plan as plans  # noqa: E402
from tests.sim.removal import plan as removal  # noqa: E402
from tests.sim.report import Figures, Progress, command, story  # noqa: E402
from tests.sim.run import Outcome, run  # noqa: E402
from tests.sim.shrink import shrink  # noqa: E402

CHUNK = 20
KINDS = ("slices", "heirs", "lending", "removal", "guests", "holding", "mitigation", "plans")
SHARE = 4
"""Of so many histories of slices there is one of each other kind besides."""
MOST_STORIES = 3


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__.split("\n\n")[0])
    parser.add_argument("--histories", type=int, default=1000, help="how many histories")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first; the others follow")
    parser.add_argument(
        "--kind",
        choices=(*KINDS, "all"),
        default="all",
        help="what moves: slices, slices with their guests, lent memory, hosts and pools that go, guests on hosts that "
        "lend, slices of hosts, guests that lose their pool memory, hosts that sleep and plans",
    )
    parser.add_argument("--sql", action="store_true", help="with the real SQL ledger, on SQLite in memory; slow")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many at the same time")
    return parser.parse_args(words)


def _draw(kind: str, seed: int) -> History:
    draws = {"slices": draw, "lending": lending.draw, "removal": removal.draw, "guests": guests.draw}
    return (draws | {"heirs": heirs.draw, "holding": holding.draw, "plans": plans.draw})[kind](seed)


def _run(kind: str, seed: int, *, tracing: bool = False, sql: bool = False) -> Outcome:
    """Run a history. Those of mitigations have a world of their own; neither they nor those of plans have SQL."""
    if kind == "mitigation":
        return mitigated.run(mitigation.draw(seed), tracing=tracing)
    return run(_draw(kind, seed), tracing=tracing, sql=sql and kind != "plans")


def _chunk(job: tuple[str, range, bool]) -> tuple[str, Figures]:
    kind, seeds, sql = job
    figures = Figures(kind)
    for seed in seeds:
        figures.add(_run(kind, seed, sql=sql))
    return kind, figures


def _counts(arguments: argparse.Namespace) -> dict[str, int]:
    """Return how many histories there are of each kind."""
    if arguments.kind != "all":
        return {arguments.kind: arguments.histories}
    part = arguments.histories // SHARE
    return {"slices": arguments.histories} | (dict.fromkeys(KINDS[1:], part) if part else {})


def _jobs(arguments: argparse.Namespace) -> Iterator[tuple[str, range, bool]]:
    for kind, count in _counts(arguments).items():
        end = arguments.seed + count
        for start in range(arguments.seed, end, CHUNK):
            yield kind, range(start, min(start + CHUNK, end)), arguments.sql


def _tell(kind: str, seed: int, sql: bool) -> None:
    outcome = _run(kind, seed, tracing=True, sql=sql)
    if outcome.code and kind == "mitigation":
        print("\n".join((*outcome.trace, f"VIOLATION {outcome.code} in history {seed}: {outcome.detail}")))
    elif outcome.code:
        print(story(outcome, shrink(outcome, lambda history: run(history, tracing=True, sql=sql))))
    else:
        print("\n".join(outcome.trace))


def main(words: list[str]) -> int:
    """Run; return the exit status."""
    arguments = _arguments(words)
    counts = _counts(arguments)
    for kind, count in counts.items():
        print(
            f"{kind}: seeds {arguments.seed} to {arguments.seed + count - 1}; one of them: "
            f"{command(arguments.seed, kind)}"
        )
    started = time.monotonic()
    figures, progress = {kind: Figures(kind) for kind in counts}, Progress(sum(counts.values()))
    with multiprocessing.get_context("fork").Pool(arguments.processes) as pool:
        for kind, part in pool.imap_unordered(_chunk, _jobs(arguments)):
            figures[kind].merge(part)
            progress.show(list(figures.values()), time.monotonic() - started)
    progress.end()
    seconds = time.monotonic() - started
    for kind, sums in figures.items():
        alone = [arguments.seed] if arguments.histories == 1 else []
        for seed in sorted(sums.failed_seeds)[:MOST_STORIES] or alone:
            _tell(kind, seed, arguments.sql)
    for sums in reversed(figures.values()):
        print(sums.text(seconds, arguments.seed))
    return 1 if any(sums.violations for sums in figures.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
