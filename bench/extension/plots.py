"""Plots of the tables: medians by share or ratio, with the least and the most. Needs matplotlib (extra `bench`)."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.extension.swap_areas import CannotMeasure

Series = Mapping[str, Mapping[float, Sequence[float]]]
"""What was measured in each round, by name of a line and place on the axis; math.inf: it did not end."""

PENALTY = "penalty, percent"
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "pondstack"}
"""Text stays text, and the same figures are the same file: plots are kept with the documentation."""


def refuse_without_library() -> None:
    """Raise CannotMeasure where matplotlib is not installed: before a long run, not after it."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError as error:
        raise CannotMeasure(f"no plots without matplotlib ({error}): pip install 'pondstack[bench]'") from error


@dataclass(frozen=True)
class Plots:
    """Writes them as SVG into a folder."""

    folder: Path

    def write(self, name: str, title: str, axis: str, lines: Series, values: str = PENALTY) -> Path:
        """Draw lines; what did not end in all rounds is left out. Penalties are shown by their logarithm."""
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        with pyplot.rc_context(SETTINGS):
            figure, axes = pyplot.subplots(figsize=(6, 4))
            for label, places in lines.items():
                at, medians, low, high = columns(places)
                axes.errorbar(at, medians, yerr=[low, high], label=label, marker="o", capsize=3)
            axes.set(title=title, xlabel=axis, ylabel=values)
            if values == PENALTY:
                axes.set_yscale("symlog", linthresh=10)
            axes.legend()
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None})
            pyplot.close(figure)
        return path


def columns(places: Mapping[float, Sequence[float]]) -> tuple[Sequence[float], ...]:
    """Return places, medians, and how far the least and the most are from them, of what ended in all rounds."""
    ended = {place: rounds for place, rounds in sorted(places.items()) if not any(map(math.isinf, rounds))}
    medians = [statistics.median_high(rounds) for rounds in ended.values()]
    low = [median - min(rounds) for median, rounds in zip(medians, ended.values(), strict=True)]
    high = [max(rounds) - median for median, rounds in zip(medians, ended.values(), strict=True)]
    return list(ended), medians, low, high
