"""`make bench-ml DATA=folder`: the untouched-memory model as a reviewer would judge it (Pond 6.4.2, Figs. 18 and 19).

Two settings: starts without any history, of which the size alone is known, and starts of a project that has one. VMs of
training and test are disjoint, and training has ended before the tests begin. What settings were chosen on is shown
apart from what no choice has looked at, and the latter is judged. Exits 0 when the targets hold.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Meter
from bench.ml import bitbrains, combined, latency, plots, rules
from bench.ml.evaluation import Curve, Maker, curve, sweep, uniform
from bench.ml.parts import FOLDS, Fold, Part, folds, parts, too_small
from pondstack.domain.errors import BadRequest
from pondstack.prediction.untouched import less

TARGETS = ((25.0, 8.0), (33.0, 4.0))
"""UM in percent, and how many times fewer over-predictions than static at the same UM, in the setting with history."""
SHOWN = (20.0, 25.0, 33.0)
WORKLOADS = 158
"""To make up where there are no samples: as many as Pond has."""
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


@dataclass(frozen=True, slots=True)
class Options:
    """How much is measured; `repeats`: so many times the VMs are dealt into folds."""

    repeats: int
    draws: int
    seed: int


@dataclass(frozen=True, slots=True)
class Measured:
    """The curves of one part, by rule; `known` and `cold`: starts that were tested."""

    part: Part
    cold_curves: Mapping[str, Curve]
    known_curves: Mapping[str, Curve]
    cold: int
    known: int


def measure(
    makers: Mapping[str, Maker], tests: Sequence[list[Fold]], options: Options, show: Callable[[str], None]
) -> dict[str, Curve]:
    """Return the curve of each rule."""
    found = {}
    for name, maker in makers.items():
        show(name)
        swept = [sweep(maker, test, uniform if name == STATIC else less) for test in tests]
        found[name] = curve(swept, options.draws, options.seed)
    return found


def dealt(trace: bitbrains.Trace, part: Part, options: Options, *, history: bool) -> list[list[Fold]]:
    """Return the repetitions of the folds."""
    return [folds(trace, part, options.seed * 1000 + number, history=history) for number in range(options.repeats)]


def measured(trace: bitbrains.Trace, part: Part, options: Options, show: Callable[[str], None]) -> Measured:
    """Return what the rules do to a part, in both settings."""
    cold, known = (dealt(trace, part, options, history=history) for history in (False, True))
    counts = [sum(len(fold.test) for fold in tests[0]) for tests in (cold, known)]
    return Measured(part, measure(COLD, cold, options, show), measure(FULL, known, options, show), *counts)


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


def explained(trace: bitbrains.Trace, options: Options) -> str:
    """Return what the figures are of, and what they are not."""
    numbers = len({item.number for item in trace.starts})
    return (
        f"{len(trace.starts)} VM-weeks of {numbers} VM numbers in {trace.weeks} weeks, each a start: a stand-in, the\n"
        "trace has no starts; a VM is its own project, its earlier days are the project's records. Each VM is tested\n"
        f"once in each of {options.repeats} times {FOLDS} folds, by what was learnt from others before; intervals of\n"
        f"95 % by {options.draws} bootstrap samples of VMs\n"
    )


def report(found: Measured) -> str:
    """Return the tables of a part."""
    return "\n".join(
        (
            f"== {found.part.title} ==",
            f"{len(found.part.tested)} VM numbers; {found.known} starts with history, {found.cold} in all, to test",
            table("no history: only the size is known", found.cold_curves),
            table("its project has a history", found.known_curves),
            *verdict(found.known_curves)[0],
            "",
        )
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
    chosen = _parser().parse_args(arguments)
    options = Options(chosen.repeats, chosen.draws, chosen.seed)
    try:
        trace = bitbrains.load(chosen.data / bitbrains.FILE)
        insensitive = insensitivity(chosen.samples)
    except (OSError, bitbrains.BadTrace, BadRequest) as error:
        print(f"bench-ml: {error}; give a folder with such a file: make bench-ml DATA=folder", file=sys.stderr)
        return 2
    why = too_small(trace)
    if why:
        print(f"bench-ml: {why}; give a longer trace, or one of more VMs", file=sys.stderr)
        return 2
    found = parts(trace)
    with Meter("rules", len(found) * (len(COLD) + len(FULL)) + len(ABLATION)) as meter:
        done = iter(range(1000))

        def show(name: str) -> None:
            meter.show(next(done), name)

        results = [measured(trace, part, options, show) for part in found]
        judged = results[-1]
        known = dealt(trace, judged.part, options, history=True)
        ablation = measure(ABLATION, known, options, show)
    draw(chosen.plots, judged, ablation, insensitive)
    print(f"plots, of the last part: {chosen.plots}/*.svg")
    print(explained(trace, options))
    for result in results:
        print(report(result))
    print(table("ablation, with history, of the same part", ablation))
    print(combined.told(insensitive, combined.untouched_points(judged.known_curves[MODEL])))
    lines, held = verdict(judged.known_curves)
    print(judged.part.title, *lines, sep="\n")
    print("OK: both targets hold" if held else "FAILED: a target does not hold")
    return 0 if held else 1


def insensitivity(samples: Path | None) -> combined.Insensitive:
    """Return the forest's curve on workloads that it has not seen, of samples or of made-up ones, and which it was.

    Raises BadRequest, OSError.
    """
    data, origin = latency.gathered(argparse.Namespace(samples=samples, workloads=WORKLOADS, seed=1))
    return combined.Insensitive(latency.points(data.workloads, data.features), origin)


def draw(folder: Path, judged: Measured, ablation: Mapping[str, Curve], insensitive: combined.Insensitive) -> None:
    """Write the figures."""
    folder.mkdir(parents=True, exist_ok=True)
    title = f"{len(judged.part.tested)} VM numbers, forward in time; VM-weeks as starts (a stand-in)"
    plots.draw(folder / "without-history.svg", f"Without history: {title}", judged.cold_curves)
    plots.draw(folder / "with-history.svg", f"With history: {title}", judged.known_curves)
    plots.draw(folder / "ablation.svg", f"Without groups of features: {title}", ablation)
    points = combined.untouched_points(judged.known_curves[MODEL])
    title = "Mispredictions and pool share (Pond, Fig. 18)"
    plots.draw_combined(folder / "combined.svg", title, insensitive, points)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.ml", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {bitbrains.FILE}")
    parser.add_argument("--samples", type=Path, help="what pondstack-sample wrote, for Fig. 18 (default: made up)")
    parser.add_argument("--plots", type=Path, default=Path("bench-ml"), help="folder for the plots (default: bench-ml)")
    parser.add_argument("--repeats", type=int, default=4, help=f"times that VMs are dealt into {FOLDS} folds (4)")
    parser.add_argument("--draws", type=int, default=500, help="bootstrap samples of the VMs (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="of folds and samples (default: 1)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
