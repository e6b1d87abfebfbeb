"""The table of a run, and whether its targets hold. Pure."""

import statistics
from collections.abc import Mapping, Sequence

from bench.figures import spread
from bench.migration.turns import ORDINARY, SHARED, SLICES, Figure

TARGET = 0.6
"""Bytes of a migration of a guest with half of its RAM in the pool, to those of an ordinary one of the same guest."""

Found = Mapping[tuple[str, int], Sequence[Figure]]
"""By way and working set, in percent; rounds in order."""

_MIB = 2**20


def ratios(found: Found, way: str, percent: int) -> list[float]:
    """Return bytes to those of the ordinary migration of the same round."""
    pairs = zip(found[way, percent], found[ORDINARY, percent], strict=True)
    return [ours.wire.all / theirs.wire.all for ours, theirs in pairs]


def rows(found: Found) -> list[str]:
    """Return a line for each way and working set."""
    made = []
    for (way, percent), figures in found.items():
        links = [statistics.median(getattr(each.wire, name) / _MIB for each in figures) for name in _LINKS]
        ratio = "" if way == ORDINARY else f", {spread(ratios(found, way, percent), 2)} of the ordinary one"
        made.append(
            f"working set {percent:2} %, {way}: {spread([each.wire.all / _MIB for each in figures], 1)} MiB{ratio}; "
            f"stream {links[0]:.1f}, data planes {links[1]:.1f}, lenders {links[2]:.1f}; "
            f"runs there after {spread([each.running for each in figures], 2)} s, "
            f"all is there after {spread([each.done for each in figures], 1)} s, "
            f"longest gap {spread([each.gap for each in figures], 2)} s, "
            f"wrong words {sum(each.wrong for each in figures)}"
        )
    return made


_LINKS = ("stream", "pages", "lenders")


def verdicts(found: Found) -> list[tuple[str, bool]]:
    """Return each target, and whether it holds."""
    made = []
    for way, percent in found:
        if way in (SHARED, SLICES):
            ratio = ratios(found, way, percent)
            what = f"working set {percent:2} %, {way}: bytes / ordinary {spread(ratio, 2)}, target <= {TARGET}"
            made.append((what, statistics.median(ratio) <= TARGET))
    wrong = sum(each.wrong for (way, _), figures in found.items() if way != ORDINARY for each in figures)
    return [*made, (f"wrong words after migrations that copy a part: {wrong}, target 0", wrong == 0)]
