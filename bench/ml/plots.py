"""Curves of OP against UM, and Fig. 18 of both models, as SVG: the file that imports matplotlib (extra `bench`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bench.ml.combined import BUDGET, Insensitive, frontier
from bench.ml.evaluation import INTERVAL, LEVELS, Curve
from pondstack.prediction.balance import Balance, Point, solve

MARKS = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
"""Lines are told apart without colours, too."""


def draw(path: Path, title: str, curves: Mapping[str, Curve]) -> None:
    """Write one figure; the bands are the bootstrap intervals of 95 %."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for mark, (name, curve) in zip(MARKS, curves.items(), strict=False):
        low, high = np.nanpercentile(curve.draws, INTERVAL, axis=0)
        (line,) = axes.plot(LEVELS, curve.op, linestyle=mark, label=name)
        axes.fill_between(LEVELS, low, high, color=line.get_color(), alpha=0.12)
    axes.set(xlabel="untouched memory given to the pool (UM, % of memory)", ylabel="over-predictions (OP, % of starts)")
    axes.set_title(title)
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path)
    pyplot.close(figure)


def draw_combined(path: Path, title: str, insensitive: Insensitive, untouched: Sequence[Point]) -> None:
    """Write mispredictions against the pool share, the optimiser's point marked."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    curves: dict[str, list[Balance]] = {
        "untouched memory alone": frontier([], untouched),
        f"insensitivity alone: {insensitive.data}": frontier(insensitive.points, []),
        "both, by Eq. 1": frontier(insensitive.points, untouched),
    }
    chosen = solve(insensitive.points, untouched, BUDGET)
    for mark, (name, found) in zip(MARKS, curves.items(), strict=False):
        axes.plot([item.gain for item in found], [item.loss for item in found], linestyle=mark, label=name)
    axes.plot([chosen.gain], [chosen.loss], "o", label=f"chosen at {BUDGET:g} %: {chosen.gain:.0f} % of the memory")
    axes.set(xlabel="pool share (% of memory)", ylabel="mispredictions (%)")
    axes.set_title(title)
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path)
    pyplot.close(figure)
