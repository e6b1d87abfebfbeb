"""The report of a run: each step by name, who died at it, and how the plans ended; JSON for the rest."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.robustness.plans.plan import EACH, PLANS_JUDGED, STEPS, Kill, Step, Way

HEAD = ("step", "met", "done", "failed", "cancelled", "broken", "killed")
NOTE = (
    "loads of hosts are SYNTHETIC (played); sleep is EMULATED: agent and nova-compute of a host are stopped, nothing "
    "is saved by it. The guest is real (QEMU without KVM), with memory of the pool, and verifies what it wrote"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a plan ended. `end` "": its step was not met. `tries`: plans that it took to meet it.

    `left_by_nova`: what its operator has to put right where a nova-compute died.
    """

    kill: Kill
    plan: str = ""
    service: str = ""
    end: str = ""
    reason: str = ""
    seconds: float = 0.0
    tries: int = 1
    left_by_nova: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """`unclean`: what was left when hosts were awake and the server was deleted."""

    seed: int
    count: int
    outcomes: Sequence[Outcome]
    unclean: Sequence[str]
    seconds: float


def missed(run: Run) -> list[str]:
    """Return the targets that do not hold."""
    wrong = [item for item in run.outcomes if item.broken]
    found = [f"{len(wrong)} plans broke a promise, target 0"] if wrong else []
    found += [f"{len(run.unclean)} leftovers at the end, target 0"] if run.unclean else []
    if len(run.outcomes) < run.count:
        found.append(f"ended early: {len(run.outcomes)} of {run.count} plans")
    if run.count >= PLANS_JUDGED:
        met = {(item.kill.step, item.kill.victim) for item in run.outcomes if item.end}
        found += [
            f"'{step.name}' was not met by a death of: {victim}"
            for way in Way
            for step, victim in EACH[way]
            if (step, victim) not in met
        ]
    return found


def text(run: Run) -> str:
    """Return the last lines of a run."""
    cells = [HEAD, *(_row(run, step) for step in STEPS)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = [" | ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    lines.insert(1, "-|-".join("-" * width for width in widths))
    nova = [thing for item in run.outcomes for thing in item.left_by_nova]
    lines.append(f"left by Nova after deaths of nova-compute, and put right as its operator does: {len(nova)}")
    lines += [f"  {thing}" for thing in nova]
    lines.append(NOTE)
    met = sum(bool(item.end) for item in run.outcomes)
    lines.append(f"seed {run.seed}: {met} deaths met their step of {len(run.outcomes)} in {run.seconds:.0f} s")
    faulty = missed(run)
    return "\n".join([*lines, f"FAILED: {'; '.join(faulty)}" if faulty else "OK: every target holds"])


def _row(run: Run, step: Step) -> tuple[str, ...]:
    mine = [item for item in run.outcomes if item.kill.step == step and item.end]
    ends, victims = Counter(item.end for item in mine), Counter(str(item.kill.victim) for item in mine)
    amiss = sum(bool(item.broken) for item in run.outcomes if item.kill.step == step)
    numbers = (len(mine), ends["done"], ends["failed"], ends["cancelled"], amiss)
    return (step.name, *map(str, numbers), ", ".join(f"{name} {count}" for name, count in victims.items()) or "-")


def save(run: Run, folder: Path) -> None:
    """Write report.json and report.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        "seed": run.seed,
        "count": run.count,
        "seconds": run.seconds,
        "missed": missed(run),
        "unclean": list(run.unclean),
        "outcomes": [asdict(item) for item in run.outcomes],
    }
    (folder / "report.json").write_text(json.dumps(data, indent=1) + "\n")
    (folder / "report.txt").write_text(text(run) + "\n")
