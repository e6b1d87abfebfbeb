"""What was measured, in words. Pure."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.ml.evaluation import Curve
from bench.ml.nested import Judged

TARGETS = ((25.0, 8.0), (33.0, 4.0))
"""UM in percent, and how many times fewer over-predictions than static at the same UM, in the setting with history."""
SHOWN = (20.0, 25.0, 33.0)
STATIC, PERCENTILE, MODEL = "static share", "a percentile of the records", "model"


@dataclass(frozen=True, slots=True)
class Line:
    """One rule: its curve, and what it was made of."""

    judged: Judged
    curve: Curve


Lines = Mapping[str, Line]


def table(title: str, lines: Lines) -> str:
    """Return OP at some UM with its interval, a line for each rule."""
    text = [title, " " * 30 + "".join(f"{f'OP at {level:.0f} % UM':>27}" for level in SHOWN)]
    for name, line in lines.items():
        cells = []
        for level in SHOWN:
            low, high = line.curve.interval(level)
            cells.append(f"{line.curve.at(level):9.2f} % ({low:5.2f} - {high:5.2f})")
        text.append(f"  {name:28}" + "  ".join(cells))
    return "\n".join(text)


def chosen(lines: Lines) -> str:
    """Return what the inner folds chose, by rule."""
    text = ["chosen by the inner folds (folds x setting; margin: memory added, spread of the records added to)"]
    for name, line in lines.items():
        found = Counter(f"{item.name} [{item.shape}]" for item in line.judged.settings)
        text += [f"  {name:28}{count:2} x {setting}" for setting, count in found.most_common()]
    return "\n".join(text)


def folds(lines: Lines) -> str:
    """Return the spread over the outer folds, where all together have the first target's UM."""
    level = TARGETS[0][0]
    text = [f"by outer fold, where all together are at {level:.0f} % UM: median (least - most)"]
    for name in (STATIC, PERCENTILE, MODEL):
        found = lines[name].judged.by_fold(level)
        um, op = (_spread([pair[place] for pair in found]) for place in (0, 1))
        text.append(f"  {name:28}UM {um} %   OP {op} %")
    return "\n".join(text)


def times(lines: Lines, name: str, level: float) -> tuple[float, str]:
    """Return how many times fewer over-predictions than static a rule makes, and the same in words."""
    found, low, high = lines[name].curve.times_better(lines[STATIC].curve, level)
    return found, f"{found:.1f} times fewer over-predictions than static (95 %: {low:.1f} - {high:.1f})"


def ratios(lines: Lines) -> list[str]:
    """Return how many times better than static the rules with settings are."""
    return [
        f"  at {level:.0f} % UM, {name:28}{times(lines, name, level)[1]}"
        for level, _ in TARGETS
        for name in (PERCENTILE, MODEL)
    ]


def compared(lines: Lines) -> str:
    """Return plainly whether a percentile of the records with a margin does as well as the model."""
    text = []
    for level, _ in TARGETS:
        found, low, high = lines[MODEL].curve.times_better(lines[PERCENTILE].curve, level)
        word = "no difference is shown" if low <= 1 <= high else "the model is better" if low > 1 else "it is better"
        text.append(
            f"a percentile of the records with a margin, at {level:.0f} % UM: {found:.2f} times the over-predictions "
            f"of the model (95 %: {low:.2f} - {high:.2f}): {word}"
        )
    return "\n".join(text)


def verdict(lines: Lines) -> tuple[list[str], bool]:
    """Return a line for each target, and whether all hold; the figure counts, its interval is told beside it."""
    text, held = [], True
    for level, wanted in TARGETS:
        found, words = times(lines, MODEL, level)
        held = held and found >= wanted
        text.append(f"with history, at {level:.0f} % UM: {words}, wanted {wanted:.0f}")
    return text, held


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):5.1f} ({min(values):5.1f} - {max(values):5.1f})"
