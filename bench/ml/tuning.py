"""`python -m bench.ml.tuning --data FOLDER`: what the settings in force compare with, on all VMs and weeks of a trace.

This is what an outer fold of bench.ml.nested does with the VMs that it learns from, done with all of them: to choose
the settings of production by, and not to judge them. A line has the mean OP in percent over the UM from 20 to 35 %, of
all VMs and without the largest one.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.ml import bitbrains, rules
from bench.ml.bitbrains import DAY_HOURS, HOUR, WEEK_DAYS
from bench.ml.folds import Outer, inner
from bench.ml.nested import Setting, tried
from bench.ml.shapes import Shape

IN_FORCE = "in force"


def settings(trace: bitbrains.Trace, seed: int) -> list[Setting]:
    """Return what is in force and all that bench.ml.rules has to choose of, the best first."""
    fold = Outer(trace.starts, (), trace.begin + trace.weeks * WEEK_DAYS * DAY_HOURS * HOUR)
    dealt = inner(fold, seed, history=True)
    found = tried(IN_FORCE, rules.model(), [Shape()], dealt)
    percentiles = {name: rules.percentile(name) for name in rules.PERCENTILES}
    for name, maker in (rules.models() | percentiles).items():
        found += tried(name, maker, rules.SHAPES, dealt)
    return sorted(found, key=lambda item: item.loss)


def main(arguments: Sequence[str] | None = None, show: Callable[[str], None] = print) -> int:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(prog="bench.ml.tuning", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {bitbrains.FILE}")
    parser.add_argument("--seed", type=int, default=1, help="of the folds (default: 1)")
    chosen = parser.parse_args(arguments)
    show("mean OP from 20 to 35 % UM, of all VMs and without the largest, both together")
    for item in settings(bitbrains.load(chosen.data / bitbrains.FILE), chosen.seed):
        show(f"  {item.name:28} [{item.shape}]  {item.loss:7.3f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
