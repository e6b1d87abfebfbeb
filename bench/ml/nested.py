"""The choice of settings in each outer fold by its inner folds, and the judgement of what was chosen (bench.ml.folds).

Of a family, the setting counts in a fold that has the least mean OP from FROM to TO percent UM on the starts that its
inner folds have kept apart: of all its VMs, and without its largest one, both together, for a single VM may have much
of all memory. The operating point goes by a budget of OP, as in production: the margin is the smallest that kept to it
on those same starts. What it does to the outer fold's VMs is the result. The static share is given no such burden: it
is set to each UM exactly, in hindsight.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from bench.ml.bitbrains import Start
from bench.ml.evaluation import LEVELS, Swept, levels
from bench.ml.folds import Fold, Outer, inner
from bench.ml.rules import Family, Maker, models
from bench.ml.shapes import UNIFORM, Array, Facts, Shape, pool

FROM, TO = LEVELS.index(20.0), LEVELS.index(35.0)
BUDGETS: Array = np.concatenate([np.arange(0.0, 10.0, 0.05), np.arange(10.0, 60.0, 0.5)])
"""OP in percent that a margin is chosen for."""
MIDDLE = 0.5
"""Share of the static rule: with the margins it goes from nothing to 80 %."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to predict and one form of the margin, and what they did on the inner folds."""

    name: str
    maker: Maker
    shape: Shape
    swept: Swept
    loss: float


@dataclass(frozen=True, slots=True)
class Judged:
    """What was chosen in each outer fold, and what that did to all; `parts`: the starts of each fold."""

    settings: Sequence[Setting]
    swept: Swept
    parts: Sequence[slice]

    def by_fold(self, level: float) -> list[tuple[float, float]]:
        """Return UM and OP of each fold in percent, where all of them together come closest to a UM."""
        point = int(np.argmin(np.abs(self.swept.um - level)))
        return [
            (
                100 * float(self.swept.pool[part, point].sum() / self.swept.memory[part].sum()),
                100 * float(self.swept.over[part, point].mean()),
            )
            for part in self.parts
        ]


def judge(family: Family, tests: Sequence[Outer], seed: int, *, history: bool) -> Judged:
    """Choose in each fold, learn, and judge its VMs by what was chosen."""
    settings = [choose(family, fold, seed, history=history) for fold in tests]
    return judge_with(settings, tests)


def without(group: Collection[str], judged: Judged, tests: Sequence[Outer], seed: int) -> Judged:
    """Judge the model without groups of features, by what was chosen with them; its margins are set anew."""
    settings = []
    for item, fold in zip(judged.settings, tests, strict=True):
        dealt = inner(fold, seed, history=True)
        settings += tried(item.name, models(group)[item.name], [item.shape], dealt)
    return judge_with(settings, tests)


def judge_with(settings: Sequence[Setting], tests: Sequence[Outer]) -> Judged:
    """Judge each fold by a setting that was chosen in it."""
    return _joined(settings, [_judged(item, fold) for item, fold in zip(settings, tests, strict=True)])


def choose(family: Family, fold: Outer, seed: int, *, history: bool) -> Setting:
    """Return the setting that is best on the inner folds."""
    dealt = inner(fold, seed, history=history)
    found = [item for name, maker in family.makers.items() for item in tried(name, maker, family.shapes, dealt)]
    return min(found, key=lambda item: item.loss)


def tried(name: str, maker: Maker, shapes: Sequence[Shape], dealt: Sequence[Fold]) -> list[Setting]:
    """Return a way to predict with each form of the margin, on starts that it has not learnt from."""
    starts = [item for fold in dealt for item in fold.test]
    shares = np.concatenate([maker(fold.train)(fold.test) for fold in dealt])
    found = []
    for shape in shapes:
        swept = _swept(shares, starts, shape)
        found.append(Setting(name, maker, shape, swept, _loss(swept)))
    return found


def static(tests: Sequence[Outer]) -> Judged:
    """Return what the same share for all does, at each share."""
    parts = [_swept(np.full(len(fold.test), MIDDLE), fold.test, UNIFORM) for fold in tests]
    return _joined((), parts)


def _judged(setting: Setting, fold: Outer) -> Swept:
    """Return what a setting does at each budget; before these it gives nothing."""
    found = _swept(setting.maker(fold.train)(fold.test), fold.test, setting.shape)
    places = np.searchsorted(setting.swept.op, BUDGETS, side="right") - 1
    nothing = np.zeros((len(found.memory), 1))
    return Swept(
        found.numbers,
        found.memory,
        np.hstack([nothing, found.pool[:, places]]),
        np.hstack([nothing, found.over[:, places]]),
    )


def _swept(shares: Array, starts: Sequence[Start], shape: Shape) -> Swept:
    facts = Facts.of(starts)
    given = pool(shape.left(shares, facts), facts.memory)
    over = (given > facts.untouched[:, None]).astype(np.float64)
    return Swept([item.number for item in starts], facts.memory, given, over)


def _loss(swept: Swept) -> float:
    largest = swept.numbers[int(np.argmax(swept.memory))]
    weights = np.array([[1.0] * len(swept.numbers), [float(number != largest) for number in swept.numbers]])
    found = levels(swept, weights)[:, FROM : TO + 1]
    return float(np.where(np.isnan(found), 100.0, found).mean())


def _joined(settings: Sequence[Setting], found: Sequence[Swept]) -> Judged:
    ends = np.cumsum([len(item.numbers) for item in found])
    parts = [slice(int(end) - len(item.numbers), int(end)) for end, item in zip(ends, found, strict=True)]
    return Judged(
        settings,
        Swept(
            [number for item in found for number in item.numbers],
            np.concatenate([item.memory for item in found]),
            np.vstack([item.pool for item in found]),
            np.vstack([item.over for item in found]),
        ),
        parts,
    )
