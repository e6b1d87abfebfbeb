"""`python -m bench.ml.tuning --data FOLDER`: what the settings of the model were chosen by, on the tuning part alone.

One setting at a time differs from what is in force. A line has the mean OP over the UM from 20 to 35 %, of all VMs and
without the largest one, whose memory alone is a quarter of all: a setting is better only if both say so.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench.ml import bitbrains, rules
from bench.ml.evaluation import LEVELS, Maker, Shape, curve, sweep
from bench.ml.parts import Fold, folds, parts
from pondstack.prediction import trainer
from pondstack.prediction.untouched import EXTRA_MIB, FLOOR, SPREAD, less

FROM, TO = LEVELS.index(20.0), LEVELS.index(35.0)
REPEATS = 6
Settings = dict[str, tuple[Maker, Shape]]


def shape(extra_mib: int = EXTRA_MIB, floor: float | None = FLOOR) -> Shape:
    """Return a margin's shape; `floor` None: the spread does not count."""

    def left(share: float, margin: float, memory_mib: int, spread: float) -> float:
        scale = 1.0 if floor is None else (floor + spread) / (floor + SPREAD)
        return share - margin * (1 + extra_mib / memory_mib) * scale

    return left


def settings() -> Settings:
    """Return what is in force, and what differs from it, by name."""
    found: Settings = {"in force": (rules.model(), less)}
    for value in (0.1, 0.15, 0.2, 0.3):
        found[f"quantile {value:g} for {trainer.QUANTILE:g}"] = (rules.model(quantile=value), less)
    for leaves in (2, 3, 6, 8):
        found[f"{leaves} leaves"] = (rules.model(num_leaves=leaves), less)
    for least in (20, 80):
        found[f"at least {least} in a leaf"] = (rules.model(min_data_in_leaf=least), less)
    for extra in (0, 2048, 8192, 16384):
        found[f"{extra} MiB for {EXTRA_MIB}"] = (rules.model(), shape(extra))
    for floor in (None, 0.05, 0.2, 0.4):
        found[f"floor {floor} for {FLOOR:g}"] = (rules.model(), shape(floor=floor))
    return found


def without_largest(tests: Sequence[Fold]) -> list[Fold]:
    """Return the folds without the VM number that has the most memory."""
    biggest = max((item for fold in tests for item in fold.test), key=lambda item: item.example.request.memory_mib)
    return [Fold(fold.train, [item for item in fold.test if item.number != biggest.number]) for fold in tests]


def mean_op(maker: Maker, form: Shape, dealt: Sequence[Sequence[Fold]]) -> float:
    """Return the mean OP in percent."""
    found = curve([sweep(maker, tests, form) for tests in dealt], 1, 1)
    return float(np.mean(found.op[FROM : TO + 1]))


def main(arguments: Sequence[str] | None = None, show: Callable[[str], None] = print) -> int:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(prog="bench.ml.tuning", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {bitbrains.FILE}")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    chosen = parser.parse_args(arguments)
    trace = bitbrains.load(chosen.data / bitbrains.FILE)
    part = parts(trace)[0]
    dealt = [folds(trace, part, number, history=True) for number in range(chosen.repeats)]
    small = [without_largest(tests) for tests in dealt]
    show(f"{part.title}\nmean OP from 20 to 35 % UM: all VMs, without the largest")
    for name, (maker, form) in settings().items():
        show(f"  {name:28} {mean_op(maker, form, dealt):7.3f} %  {mean_op(maker, form, small):7.3f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
