"""`make bench-ml DATA=folder`: the untouched-memory model as a reviewer would judge it (Pond 6.4.2, Figs. 18 and 19).

Two settings: starts without any history, of which the size alone is known, and starts of a project that has one. In
both, settings are chosen, learnt and judged by nested folds of VMs, forward in time: the scheme is in bench.ml.folds,
the choice in bench.ml.nested, and how UM and OP count in bench.ml.evaluation. Besides, the setting with history is
judged without the largest VM, on which the result may hang. Exits 0 when the targets hold.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.figures import Meter
from bench.ml import bitbrains, combined, latency, nested, plots, report, rules
from bench.ml.evaluation import curve
from bench.ml.folds import INNER, OUTER, Outer, outer, too_small
from bench.ml.report import MODEL, PERCENTILE, STATIC, Line, Lines
from bench.ml.rules import COLD_SHAPES, SHAPES, Family
from bench.ml.shapes import Shape
from pondstack.domain.errors import BadRequest

WORKLOADS = 158
"""To make up where there are no samples: as many as Pond has."""
PRODUCTION = "model, production's settings"
PERCENTILES = Family({name: rules.percentile(name) for name in rules.PERCENTILES}, SHAPES)
FULL: dict[str, Family] = {
    "median of its size": Family({"median": rules.size_median}, SHAPES),
    "last week's 5th percentile": Family({"week_p5": rules.percentile("week_p5")}, SHAPES),
    "four weeks' 1st percentile": Family({"weeks_p1": rules.percentile("weeks_p1")}, SHAPES),
    PERCENTILE: PERCENTILES,
    PRODUCTION: Family({"as it is": rules.model()}, [Shape()]),
    MODEL: Family(rules.models(), SHAPES),
}
SMALL = {PERCENTILE: PERCENTILES, MODEL: FULL[MODEL]}
COLD = {
    "median of its size": Family({"median": rules.size_median}, COLD_SHAPES),
    MODEL: Family(rules.models(), COLD_SHAPES),
}
ABLATION: dict[str, tuple[str, ...]] = {
    **{f"without {group}": (group,) for group in ("size", *rules.HISTORY)},
    "without any history": rules.HISTORY,
}

Show = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How much is measured; `seed`: of folds and samples."""

    draws: int
    seed: int


@dataclass(frozen=True, slots=True)
class Measured:
    """The rules on a trace, in both settings and without the largest VM, and the model without groups of features."""

    cold: Lines
    known: Lines
    small: Lines
    ablation: Lines


def measure(
    families: Mapping[str, Family], tests: Sequence[Outer], options: Options, show: Show, *, history: bool
) -> Lines:
    """Return each rule's line, the static share first."""
    found = {STATIC: nested.static(tests)}
    for name, family in families.items():
        show(name)
        found[name] = nested.judge(family, tests, options.seed, history=history)
    return {name: Line(item, curve(item.swept, options.draws, options.seed)) for name, item in found.items()}


def ablate(model: Line, tests: Sequence[Outer], options: Options, show: Show) -> Lines:
    """Return the model's line, and those of the model without groups of features."""
    found = {MODEL: model}
    for name, groups in ABLATION.items():
        show(name)
        judged = nested.without(groups, model.judged, tests, options.seed)
        found[name] = Line(judged, curve(judged.swept, options.draws, options.seed))
    return found


def measured(trace: bitbrains.Trace, options: Options, show: Show) -> Measured:
    """Return all that is measured on a trace."""
    tests = outer(trace, options.seed, history=True)
    known = measure(FULL, tests, options, show, history=True)
    return Measured(
        measure(COLD, outer(trace, options.seed, history=False), options, show, history=False),
        known,
        measure(SMALL, outer(without_largest(trace), options.seed, history=True), options, show, history=True),
        ablate(known[MODEL], tests, options, show),
    )


def without_largest(trace: bitbrains.Trace) -> bitbrains.Trace:
    """Return the trace without the VM number that has the most memory."""
    largest = max(trace.starts, key=lambda item: item.example.request.memory_mib)
    return replace(trace, starts=[item for item in trace.starts if item.number != largest.number])


def explained(trace: bitbrains.Trace, found: Measured, options: Options) -> str:
    """Return what the figures are of, and what they are not."""
    numbers = len({item.number for item in trace.starts})
    known, cold = (lines[STATIC].judged.swept.numbers for lines in (found.known, found.cold))
    return (
        f"{len(trace.starts)} VM-weeks of {numbers} VM numbers in {trace.weeks} weeks, each a start: a stand-in, the\n"
        "trace has no starts; a VM is its own project, its earlier days are the project's records. Judged: "
        f"{len(known)}\nstarts with history of {len(set(known))} VM numbers, {len(cold)} without, each once, by what "
        f"others did in earlier weeks:\n{OUTER} outer folds of VMs; settings and margins by {INNER} inner folds of the "
        f"VMs that are learnt from;\nintervals of 95 % by {options.draws} bootstrap samples of VMs\n"
    )


def told(trace: bitbrains.Trace, found: Measured, options: Options) -> str:
    """Return all tables."""
    largest = max(item.example.request.memory_mib for item in trace.starts) // 1024
    without = f"with history, without the VM of {largest} GiB (no target: how much hangs on one VM)"
    return "\n\n".join(
        (
            explained(trace, found, options),
            report.table("no history: only the size is known", found.cold),
            report.table("its project has a history", found.known),
            report.folds(found.known),
            report.chosen({name: found.known[name] for name in (PERCENTILE, MODEL)}),
            report.table("ablation, with history; settings as chosen with all features", found.ablation),
            "\n".join((report.table(without, found.small), *report.ratios(found.small))),
            "\n".join(("with history, beside the static share", *report.ratios(found.known))),
            report.compared(found.known),
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, draw, print."""
    begun = time.monotonic()
    chosen = _parser().parse_args(arguments)
    options = Options(chosen.draws, chosen.seed)
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
    with Meter("rules", len(COLD) + len(FULL) + len(SMALL) + len(ABLATION)) as meter:
        done = iter(range(1000))
        found = measured(trace, options, lambda name: meter.show(next(done), name))
    draw(chosen.plots, found, insensitive)
    print(f"plots: {chosen.plots}/*.svg")
    print(told(trace, found, options))
    print(combined.told(insensitive, combined.untouched_points(found.known[MODEL].curve)))
    lines, held = report.verdict(found.known)
    print(f"took {time.monotonic() - begun:.0f} s, {time.process_time():.0f} s of CPU")
    print(*lines, sep="\n")
    print("OK: both targets hold" if held else "FAILED: a target does not hold")
    return 0 if held else 1


def insensitivity(samples: Path | None) -> combined.Insensitive:
    """Return the forest's curve on workloads that it has not seen, of samples or of made-up ones, and which it was.

    Raises BadRequest, OSError.
    """
    data, origin = latency.gathered(argparse.Namespace(samples=samples, workloads=WORKLOADS, seed=1))
    return combined.Insensitive(latency.points(data.workloads, data.features), origin)


def draw(folder: Path, found: Measured, insensitive: combined.Insensitive) -> None:
    """Write the figures."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {"without-history": found.cold, "with-history": found.known, "ablation": found.ablation}
    names = ("Without history", "With history", "Without groups of features")
    for name, (file, lines) in zip(names, drawn.items(), strict=True):
        title = f"{name}: nested folds of VMs, forward in time; VM-weeks as starts (a stand-in)"
        plots.draw(folder / f"{file}.svg", title, {rule: line.curve for rule, line in lines.items()})
    points = combined.untouched_points(found.known[MODEL].curve)
    title = "Mispredictions and pool share (Pond, Fig. 18)"
    plots.draw_combined(folder / "combined.svg", title, insensitive, points)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.ml", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {bitbrains.FILE}")
    parser.add_argument("--samples", type=Path, help="what pondstack-sample wrote, for Fig. 18 (default: made up)")
    parser.add_argument("--plots", type=Path, default=Path("bench-ml"), help="folder for the plots (default: bench-ml)")
    parser.add_argument("--draws", type=int, default=500, help="bootstrap samples of the VMs (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="of folds and samples (default: 1)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
