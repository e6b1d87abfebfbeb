"""`make bench-ml DATA=folder`: the untouched-memory model as a reviewer would judge it (Pond 6.4.2, Fig. 19).

Two settings: starts without any history, of which the size alone is known, and starts of a project that has one. VMs of
training and test are disjoint, and training has ended before the tests begin. Exits 0 when the targets hold.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.figures import Meter
from bench.ml import bitbrains, plots, rules
from bench.ml.evaluation import Curve, Maker, Split, curve, forgotten, splits, sweep

TARGETS = ((25.0, 8.0), (33.0, 4.0))
"""UM in percent, and how many times fewer over-predictions than static at the same UM, in the setting with history."""
SHOWN = (20.0, 25.0, 33.0)
STATIC, MODEL = "static share", "model"
FULL: dict[str, Maker] = {
    STATIC: rules.static,
    "median of its size": rules.size_median,
    "last week's 5th percentile": rules.last_week("week_p5"),
    "four weeks' 1st percentile": rules.last_week("weeks_p1"),
    MODEL: rules.model(),
}
COLD = {name: FULL[name] for name in (STATIC, "median of its size", MODEL)}
ABLATION: dict[str, Maker] = {
    MODEL: FULL[MODEL],
    **{f"without {group}": rules.model((group,)) for group in ("size", *rules.HISTORY)},
    "without any history": rules.model(rules.HISTORY),
}


def measure(
    makers: Mapping[str, Maker], tests: Sequence[Split], draws: int, seed: int, show: Callable[[str], None]
) -> dict[str, Curve]:
    """Return the curve of each rule."""
    found = {}
    for name, maker in makers.items():
        show(name)
        found[name] = curve([sweep(maker, test, uniform=name == STATIC) for test in tests], draws, seed)
    return found


def table(title: str, curves: Mapping[str, Curve]) -> str:
    """Return OP at some UM with its interval, a line for each rule."""
    lines = [title, "  " + "".join(f"{f'OP at {level:.0f} % UM':>27}" for level in SHOWN)]
    for name, found in curves.items():
        cells = []
        for level in SHOWN:
            low, high = found.interval(level)
            cells.append(f"{found.at(level):9.2f} % ({low:5.2f} - {high:5.2f})")
        lines.append(f"  {name:28}" + "  ".join(cells))
    return "\n".join(lines)


def explained(trace: bitbrains.Trace, chosen: argparse.Namespace, train: int, known: int, cold: int) -> str:
    """Return what the figures are of, and what they are not."""
    numbers = len({item.number for item in trace.starts})
    return (
        f"{len(trace.starts)} VM-weeks of {numbers} VM numbers, each a start: a stand-in, the trace has no starts;\n"
        "a VM is its own project, its earlier days are the project's records. Trees, quantile and the shape of\n"
        "the margin were chosen by looking at bitbrains: judge them by a trace that came later.\n"
        f"{chosen.splits} random splits; in the first {train} starts to train, {known} with history and {cold} in all\n"
        f"to test; intervals of 95 % by {chosen.draws} bootstrap samples of VMs\n"
    )


def verdict(curves: Mapping[str, Curve]) -> tuple[list[str], bool]:
    """Return a line for each target, and whether all hold."""
    lines, held = [], True
    for level, wanted in TARGETS:
        times, low, high = curves[MODEL].times_better(curves[STATIC], level)
        held = held and times >= wanted
        lines.append(
            f"with history, at {level:.0f} % UM: {times:.1f} times fewer over-predictions than static "
            f"(95 %: {low:.1f} - {high:.1f}), wanted {wanted:.0f}"
        )
    return lines, held


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, draw, print."""
    parser = argparse.ArgumentParser(prog="bench.ml", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {bitbrains.FILE}")
    parser.add_argument("--plots", type=Path, default=Path("bench-ml"), help="folder for the plots (default: bench-ml)")
    parser.add_argument("--splits", type=int, default=40, help="random splits of the VMs (default: 40)")
    parser.add_argument("--draws", type=int, default=500, help="bootstrap samples of the VMs (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="of splits and samples (default: 1)")
    chosen = parser.parse_args(arguments)
    try:
        trace = bitbrains.load(chosen.data / bitbrains.FILE)
    except (OSError, bitbrains.BadTrace) as error:
        print(f"bench-ml: {error}; give a folder with such a file: make bench-ml DATA=folder", file=sys.stderr)
        return 2
    known = splits(trace, chosen.splits, chosen.seed, history=True)
    cold = [forgotten(split) for split in splits(trace, chosen.splits, chosen.seed, history=False)]
    if not all(split.train and split.test for split in (*known, *cold)):
        print(f"bench-ml: {len(trace.starts)} VM-weeks are too few to split; give a longer trace", file=sys.stderr)
        return 2
    with Meter("rules", len(COLD) + len(FULL) + len(ABLATION)) as meter:
        done = iter(range(1000))

        def show(name: str) -> None:
            meter.show(next(done), name)

        one, two, three = (
            measure(makers, tests, chosen.draws, chosen.seed, show)
            for makers, tests in ((COLD, cold), (FULL, known), (ABLATION, known))
        )
    chosen.plots.mkdir(parents=True, exist_ok=True)
    title = f"{chosen.splits} splits by VM, forward in time; VM-weeks as starts (a stand-in)"
    plots.draw(chosen.plots / "without-history.svg", f"Without history: {title}", one)
    plots.draw(chosen.plots / "with-history.svg", f"With history: {title}", two)
    plots.draw(chosen.plots / "ablation.svg", f"Without groups of features: {title}", three)
    print(f"plots: {chosen.plots}/*.svg")
    print(explained(trace, chosen, len(known[0].train), len(known[0].test), len(cold[0].test)))
    print(table("no history: only the size is known", one), "\n")
    print(table("its project has a history", two), "\n")
    print(table("ablation, with history", three), "\n")
    lines, held = verdict(two)
    print("\n".join(lines))
    print("OK: both targets hold" if held else "FAILED: a target does not hold")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
