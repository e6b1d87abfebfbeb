"""Zombieland's Fig. 8: the replacement policies on its micro benchmark, by time and by faults."""

import itertools
import statistics
from collections.abc import Sequence
from typing import Any

from bench.extension.micro import ALL_LOCAL, EXTENSION, SWAPS, MicroBench, Turn, Work
from bench.extension.penalties import Penalty, Verdict, beats, fewer, table
from bench.figures import Meter, spread

POLICIES = ("fifo", "clock", "mixed", "s3-fifo")
PATTERNS = ("sequential", "skewed")

Cell = tuple[str, int, str]
"""Pattern, percent of the array that is local, and policy or way."""

Turns = dict[Cell, list[Turn]]


def measure_policies(bench: MicroBench, work: Sequence[Work], shares: Sequence[int], rounds: int) -> Turns:
    """Return the turns of each policy. Without read-ahead: it would hide which page was chosen."""
    found: Turns = {(each.pattern, share, policy): [] for each in work for share in shares for policy in POLICIES}
    turns = list(itertools.product(range(rounds), work, shares, POLICIES))
    with Meter("turns of policies", len(turns)) as meter:
        for at, (_, each, share, policy) in enumerate(turns):
            settings: dict[str, Any] = {"policy": policy, "read_ahead_pages": 0, "sealed": False}
            turn = bench.extension(each, each.mib * share // 100, **settings)
            found[each.pattern, share, policy].append(turn)
            meter.show(at + 1, f"{each.pattern}, {share} % local, {policy}")
    return found


def policy_rows(found: Turns) -> str:
    """Return the table of Fig. 8: seconds (its top), faults of 100 accesses (middle)."""
    places = list(dict.fromkeys(cell[:2] for cell in found))
    lines = []
    for pattern, share in places:
        cells = [found[pattern, share, policy] for policy in POLICIES]
        lines.append([pattern, f"{share} %", *(_policy(turns) for turns in cells)])
    return table(("pattern", "local memory", *POLICIES), lines)


def _policy(turns: Sequence[Turn]) -> str:
    return f"{spread([each.seconds for each in turns], 2)} s, {statistics.median(_faults(turns)):.1f} faults"


def _faults(turns: Sequence[Turn]) -> list[float]:
    return [100 * each.faults / each.accesses for each in turns]


def policy_series(found: Turns, pattern: str) -> dict[str, dict[float, Sequence[float]]]:
    """Return the faults of 100 accesses of one pattern for a plot."""
    shares = [cell[1] for cell in found if cell[0] == pattern]
    return {policy: {share: _faults(found[pattern, share, policy]) for share in shares} for policy in POLICIES}


def policy_verdicts(found: Turns) -> list[Verdict]:
    """Judge S3-FIFO by faults, and Mixed by both. Only the former is a target here: see the documentation."""
    places = list(dict.fromkeys(cell[:2] for cell in found))

    def median(policy: str, what: str) -> dict[str, float]:
        return {
            f"{pattern} {share} %": statistics.median(getattr(turn, what) for turn in found[pattern, share, policy])
            for pattern, share in places
        }

    return [
        fewer(f"{policy} beats {other} on the micro benchmark, {what}", median(policy, what), median(other, what))
        for policy, whats in (("s3-fifo", ("faults",)), ("mixed", ("seconds", "faults")))
        for other in ("fifo", "clock")
        for what in whats
    ]


def measure_ways(bench: MicroBench, work: Sequence[Work], shares: Sequence[int], rounds: int) -> Turns:
    """Return the turns of RAM extension and of swap on this machine; every other round runs backwards."""
    ways = (EXTENSION, *SWAPS)
    cells: list[tuple[Work, int, str]] = []
    for each in work:
        cells += [(each, 100, ALL_LOCAL), *((each, share, way) for share in shares for way in ways)]
    found: Turns = {(each.pattern, share, way): [] for each, share, way in cells}
    with Meter("turns of the micro benchmark", rounds * len(cells)) as meter:
        for number in range(rounds):
            for at, (each, share, way) in enumerate(cells if number % 2 == 0 else cells[::-1]):
                found[each.pattern, share, way].append(_turn(bench, each, share, way))
                meter.show(number * len(cells) + at + 1, f"{each.pattern}, {share} % local, {way}")
    return found


def _turn(bench: MicroBench, work: Work, share: int, way: str) -> Turn:
    local_mib = work.mib * share // 100
    if way == ALL_LOCAL:
        return bench.local(work)
    return bench.extension(work, local_mib) if way == EXTENSION else bench.swapped(work, local_mib, way)


def _penalty(found: Turns, cell: Cell) -> Penalty:
    base = [turn.seconds for turn in found[cell[0], 100, ALL_LOCAL]]
    return Penalty.of([turn.seconds for turn in found[cell]], base)


def way_penalties(found: Turns, way: str) -> dict[str, Penalty]:
    """Return the penalties of one way over all-local turns, by pattern and share."""
    return {f"{cell[0]} {cell[1]} %": _penalty(found, cell) for cell in found if cell[2] == way}


def way_series(found: Turns, pattern: str) -> dict[str, dict[float, Sequence[float]]]:
    """Return the penalties of one pattern for a plot."""
    names = {EXTENSION: EXTENSION} | SWAPS
    return {
        name: {cell[1]: _penalty(found, cell).percents for cell in found if cell[0] == pattern and cell[2] == way}
        for way, name in names.items()
    }


def way_rows(found: Turns) -> str:
    """Return the table of the micro benchmark as a process."""
    columns = {way: way_penalties(found, way) for way in (EXTENSION, *SWAPS)}
    lines = [[place, *(str(column[place]) for column in columns.values())] for place in columns[EXTENSION]]
    return table(("pattern, local memory", EXTENSION, *SWAPS.values()), lines)


def way_verdicts(found: Turns) -> list[Verdict]:
    """Judge RAM extension against swap on local memory and disk; not a target, but what a reader wants to know."""
    ours = way_penalties(found, EXTENSION)
    return [beats(f"{EXTENSION} beats {name}", ours, way_penalties(found, way)) for way, name in SWAPS.items()]
