"""`make bench-lifetime DATA=folder`: how good the remaining lifetime of a VM is, told from its flavor and its age.

The trace is split forward in time: curves are made of what is seen of the VMs until a moment, those that are still
there then censored, by the production code (Kaplan and Meier, by flavor where 20 reached the age, else of all); they
are asked about VMs that arrive later, at several ages that these have reached. A calibrated median has half of them end
within it, a calibrated 90th percentile nine of ten. Beside it stands the median of all lifetimes less the age, which is
what one says who does not look again. VMs whose end was not seen count by those who could be seen for longer: each end
weighs as the inverse of its chance to be seen (IPCW); where that is under 5 %, nothing is said of the answer.
The trace has no projects; a flavor is a size. Intervals: bootstrap over the tenants' batches, whose VMs are alike.
"""

import argparse
import csv
import gzip
import math
import random
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import percentile
from bench.trace import BIN_SECONDS, BadTrace
from pondstack.prediction.lifetime import LEAST_AT_RISK, Life, Survival

FILE = "vm_requests.csv.gz"
HOUR, DAY = 3600.0, 86400.0
AGES = (0.0, 0.5 * HOUR, HOUR, 4 * HOUR, 12 * HOUR, DAY, 3 * DAY)
LEAST_VMS = 200
"""Of an age: with fewer, its row is not shown, and no share is told of fewer."""
LEAST_SEEN = 0.05
WITHIN = 0.10
"""How far a calibrated share may be from what it says, averaged over the ages."""


@dataclass(frozen=True, slots=True)
class Vm:
    """One VM of the trace; seconds. `ended`: its end was seen, `lived` after its arrival; else it lived for longer."""

    arrived: float
    lived: float
    ended: bool
    flavor: str
    batch: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What was said of a VM at an age, and what came: `rest` of its life, or longer than that where not `ended`."""

    batch: str
    rest: float
    ended: bool
    median: float | None
    p90: float | None
    fixed: float


def load(folder: Path, seed: int) -> list[Vm]:
    """Read the trace, in order of arrival. Raises BadTrace, OSError."""
    chance = random.Random(seed)
    path = folder / FILE
    with gzip.open(path, "rt", newline="") as lines:
        found = [_vm(row, number, chance) for number, row in enumerate(csv.DictReader(lines), 2)]
    if not found:
        raise BadTrace(f"{path} has no requests")
    return sorted(found, key=lambda vm: vm.arrived)


def _vm(row: Mapping[str, str], number: int, chance: random.Random) -> Vm:
    try:
        low, high, censored = float(row["dur_lo_s"]), float(row["dur_hi_s"]), row["censored"] not in ("", "0")
        # Lifetimes are known by bins: each in it is as likely. Of one whose end was not seen its begin is certain.
        lived = low if censored else chance.uniform(max(0.0, low - BIN_SECONDS) if low == high else low, high)
        flavor = f"{row['cores']}x{row['mem_gb']}"
        return Vm(float(row["arrival_s"]), lived, not censored, flavor, row["batch_id"])
    except (KeyError, TypeError, ValueError) as error:
        wanted = "arrival_s, batch_id, cores, mem_gb, dur_lo_s, dur_hi_s, censored"
        raise BadTrace(f"line {number}: {error!r}; wanted {wanted}") from None


class Curves:
    """What the VMs until a moment say, by flavor and of all."""

    def __init__(self, vms: Iterable[Vm], moment: float) -> None:
        lives: dict[str, list[Life]] = defaultdict(list)
        for vm in vms:
            if vm.arrived < moment:
                seen = vm.arrived + vm.lived <= moment
                life = Life(0.0, vm.lived if seen else moment - vm.arrived, seen and vm.ended)
                lives[vm.flavor].append(life)
                lives[""].append(life)
        self._curves = {flavor: Survival(found) for flavor, found in lives.items()}
        self._answers: dict[tuple[str, float, float], float | None] = {}

    def remaining(self, flavor: str, age: float, percent: float) -> float | None:
        """Return the remaining lifetime of a flavor's VM at an age."""
        key = (flavor, age, percent)
        if key not in self._answers:
            own = self._curves.get(flavor)
            curve = own if own is not None and own.at_risk(age) >= LEAST_AT_RISK else self._curves[""]
            self._answers[key] = curve.remaining(age, percent)
        return self._answers[key]


def ask(vms: Sequence[Vm], moment: float, age: float) -> list[Asked]:
    """Return what is said of the VMs that arrive from a moment on and reach an age."""
    curves = Curves(vms, moment)
    whole = curves.remaining("", 0.0, 50.0) or math.inf
    return [
        Asked(
            batch=vm.batch,
            rest=vm.lived - age,
            ended=vm.ended,
            median=curves.remaining(vm.flavor, age, 50.0),
            p90=curves.remaining(vm.flavor, age, 90.0),
            fixed=max(0.0, whole - age),
        )
        for vm in vms
        if vm.arrived >= moment and (vm.lived > age or age == 0)
    ]


class Seen:
    """The chance that the end of a VM is seen, by how long it lives on: the survival of being seen (Kaplan, Meier)."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        at_risk, chance = len(asked), 1.0
        self._rests: list[float] = []
        self._chances: list[float] = []
        for one in sorted(asked, key=lambda one: (one.rest, not one.ended)):
            self._rests.append(one.rest)
            self._chances.append(chance)
            chance *= 1.0 if one.ended else 1.0 - 1.0 / at_risk
            at_risk -= 1

    def at(self, rest: float) -> float:
        """Return the chance; 0 for longer than anybody was seen."""
        place = bisect_left(self._rests, rest)
        return self._chances[place] if place < len(self._chances) else 0.0


def within(asked: Iterable[Asked], said: Callable[[Asked], float | None], seen: Seen) -> tuple[float, int]:
    """Return how many ended within what was said, weighed, and of how many that can be told."""
    hits, count = 0.0, 0
    for one in asked:
        bound = said(one)
        if bound is not None and seen.at(bound) >= LEAST_SEEN:
            count += 1
            hits += 1.0 / seen.at(one.rest) if one.ended and one.rest <= bound else 0.0
    return hits, count


SAYINGS: dict[str, tuple[float, Callable[[Asked], float | None]]] = {
    "median": (0.5, lambda one: one.median),
    "p90": (0.9, lambda one: one.p90),
    "fixed median": (0.5, lambda one: one.fixed),
}


def intervals(asked: Sequence[Asked], draws: int, seed: int) -> dict[str, tuple[float, float, float]]:
    """Return (share, low, high) of each saying: the share that ended within it, and its 95 % interval."""
    batches: dict[str, list[Asked]] = defaultdict(list)
    for one in asked:
        batches[one.batch].append(one)
    chance, seen = random.Random(seed), Seen(asked)
    found = {}
    for name, (_, said) in SAYINGS.items():
        counts = [within(group, said, seen) for group in batches.values()]
        drawn = [_share(chance.choices(counts, k=len(counts))) for _ in range(draws)]
        found[name] = (_share(counts), percentile(drawn, 2.5), percentile(drawn, 97.5))
    return found


def _share(counts: Sequence[tuple[float, int]]) -> float:
    known = sum(count for _, count in counts)
    return sum(hits for hits, _ in counts) / known if known >= LEAST_VMS else math.nan


def _cell(figures: tuple[float, float, float]) -> str:
    share, low, high = figures
    text = "cannot be told" if math.isnan(share) else f"{share:.3f} ({low:.3f} - {high:.3f})"
    return f"{text:<21}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when the medians are calibrated, and better than the one that is not asked again."""
    parser = argparse.ArgumentParser(prog="make bench-lifetime", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, required=True, help=f"folder with {FILE} in the format of azure2017 (DATA)"
    )
    parser.add_argument("--split", type=float, default=0.7, help="share of the trace's time before the split (SPLIT)")
    parser.add_argument("--draws", type=int, default=200, help="bootstrap draws (DRAWS)")
    parser.add_argument("--seed", type=int, default=1, help="of the draws (SEED)")
    options = parser.parse_args(arguments)
    try:
        vms = load(options.data, options.seed)
    except (BadTrace, OSError) as error:
        parser.error(str(error))
    moment = vms[0].arrived + options.split * (vms[-1].arrived - vms[0].arrived)
    print(f"\n{__doc__.split(chr(10) * 2)[1]}\n")
    before = sum(vm.arrived < moment for vm in vms)
    if min(before, len(vms) - before) < LEAST_VMS:
        parser.error(f"{before} VMs arrive before the split, {len(vms) - before} after it: choose another --split")
    print(f"n = {before:,} VMs before the split, {len(vms) - before:,} after it; {options.draws} draws")
    print("age (h)      VMs   said p50 (h) | ended within: p50            p90                  fixed median")
    errors: dict[str, list[float]] = defaultdict(list)
    for age in AGES:
        asked = ask(vms, moment, age)
        if len(asked) < LEAST_VMS:
            continue
        found = intervals(asked, options.draws, options.seed)
        said = percentile([one.median for one in asked if one.median is not None], 50)
        cells = "  ".join(map(_cell, found.values()))
        print(f"{age / HOUR:7.1f}{len(asked):>9,}{said / HOUR:>12.2f}   | {cells}", flush=True)
        for name, (share, _, _) in found.items():
            if not math.isnan(share):
                errors[name].append(abs(share - SAYINGS[name][0]))
    mean = {name: sum(values) / len(values) for name, values in errors.items()}
    held = max(mean["median"], mean.get("p90", math.inf)) <= WITHIN and mean["median"] < mean["fixed median"]
    figures = ", ".join(f"{name} {value:.3f}" for name, value in mean.items())
    print(f"{'OK' if held else 'FAILED'}: mean distance to the share that was said: {figures}; target <= {WITHIN:.2f}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
