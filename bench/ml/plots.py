"""Curves of OP against UM as SVG: the one file that imports matplotlib (extra `bench`)."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bench.ml.evaluation import INTERVAL, LEVELS, Curve

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
