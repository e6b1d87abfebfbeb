"""FP against LI as SVG (Pond Fig. 17)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.ml.plots import MARKS, figure

BAND = (0.5, 99.5)


def draw(path: Path, title: str, levels: Sequence[float], curves: Mapping[str, Any]) -> None:
    """Write one figure; the bands are 99 % of the splits."""
    x, y = "workloads marked insensitive (LI, %)", "false positives (FP, % of workloads)"
    with figure(path, title, x, y) as axes:
        for place, (name, curve) in enumerate(curves.items()):
            low, high = np.percentile(curve.fp, BAND, axis=0)
            (line,) = axes.plot(levels, curve.fp.mean(axis=0), linestyle=MARKS[place % len(MARKS)], label=name)
            axes.fill_between(levels, low, high, color=line.get_color(), alpha=0.08)
