"""Curves of OP against UM, and Fig. 18 of both models, as SVG: the file that imports matplotlib (extra `bench`)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench.ml.combined import BUDGET, Insensitive, frontier
from bench.ml.evaluation import INTERVAL, LEVELS, Curve
from pondstack.prediction.balance import Balance, Point, solve

MARKS = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
"""Lines are told apart without colours, too."""


@contextmanager
def figure(path: Path, title: str, x: str, y: str) -> Iterator[Any]:
    """Give the axes of one figure, and write it."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    drawn, axes = pyplot.subplots(figsize=(8, 5))
    yield axes
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title)
    axes.set_ylim(bottom=0)
    axes.legend()
    drawn.savefig(path)
    pyplot.close(drawn)


def draw(path: Path, title: str, curves: Mapping[str, Curve]) -> None:
    """Write one figure; the bands are the bootstrap intervals of 95 %."""
    x, y = "untouched memory given to the pool (UM, % of memory)", "over-predictions (OP, % of starts)"
    with figure(path, title, x, y) as axes:
        for mark, (name, curve) in zip(MARKS, curves.items(), strict=False):
            low, high = np.nanpercentile(curve.draws, INTERVAL, axis=0)
            (line,) = axes.plot(LEVELS, curve.op, linestyle=mark, label=name)
            axes.fill_between(LEVELS, low, high, color=line.get_color(), alpha=0.12)


def draw_combined(path: Path, title: str, insensitive: Insensitive, untouched: Sequence[Point]) -> None:
    """Write mispredictions against the pool share, the optimiser's point marked."""
    curves: dict[str, list[Balance]] = {
        "untouched memory alone": frontier([], untouched),
        f"insensitivity alone: {insensitive.data}": frontier(insensitive.points, []),
        "both, by Eq. 1": frontier(insensitive.points, untouched),
    }
    chosen = solve(insensitive.points, untouched, BUDGET)
    with figure(path, title, "pool share (% of memory)", "mispredictions (%)") as axes:
        for mark, (name, found) in zip(MARKS, curves.items(), strict=False):
            axes.plot([item.gain for item in found], [item.loss for item in found], linestyle=mark, label=name)
        axes.plot([chosen.gain], [chosen.loss], "o", label=f"chosen at {BUDGET:g} %: {chosen.gain:.0f} % of the memory")
