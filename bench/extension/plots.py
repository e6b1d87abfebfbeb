"""Plots of the tables: medians by share or ratio, with the least and the most. Needs matplotlib (extra `bench`)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.extension.penalties import Penalty
from bench.extension.swap_areas import CannotMeasure

Series = Mapping[str, Mapping[float, Penalty]]
"""Penalties by name of a line and place on the axis."""


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

    def write(self, name: str, title: str, axis: str, lines: Series) -> Path:
        """Draw lines of penalties; what did not end is left out."""
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(6, 4))
        for label, places in lines.items():
            at, medians, low, high = columns(places)
            axes.errorbar(at, medians, yerr=[low, high], label=label, marker="o", capsize=3)
        axes.set(title=title, xlabel=axis, ylabel="penalty, percent")
        axes.set_yscale("symlog", linthresh=10)
        axes.legend()
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.svg"
        figure.savefig(path)
        pyplot.close(figure)
        return path


def columns(places: Mapping[float, Penalty]) -> tuple[Sequence[float], ...]:
    """Return places, medians, and how far the least and the most are from them, of what ended in all rounds."""
    ended = {place: each for place, each in sorted(places.items()) if not any(map(math.isinf, each.percents))}
    medians = [each.median for each in ended.values()]
    low = [median - min(each.percents) for median, each in zip(medians, ended.values(), strict=True)]
    high = [max(each.percents) - median for median, each in zip(medians, ended.values(), strict=True)]
    return list(ended), medians, low, high
