"""The report of a run: each step by name, who died at it, and how the plans ended; JSON for the rest."""

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.robustness import deaths
from tests.robustness.deaths import Run, broken, judged, left_by_nova, table
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


def missed(run: Run) -> list[str]:
    """Return the targets that do not hold."""
    found = broken(run, "plans")
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
    lines = table(HEAD, *(_row(run, step) for step in STEPS))
    lines += left_by_nova(run)
    lines.append(NOTE)
    met = sum(bool(item.end) for item in run.outcomes)
    lines.append(f"seed {run.seed}: {met} deaths met their step of {len(run.outcomes)} in {run.seconds:.0f} s")
    return judged(lines, missed(run))


def _row(run: Run, step: Step) -> tuple[str, ...]:
    mine = [item for item in run.outcomes if item.kill.step == step and item.end]
    ends, victims = Counter(item.end for item in mine), Counter(str(item.kill.victim) for item in mine)
    amiss = sum(bool(item.broken) for item in run.outcomes if item.kill.step == step)
    numbers = (len(mine), ends["done"], ends["failed"], ends["cancelled"], amiss)
    return (step.name, *map(str, numbers), ", ".join(f"{name} {count}" for name, count in victims.items()) or "-")


def save(run: Run, folder: Path) -> None:
    """Write report.json and report.txt."""
    deaths.save(run, folder, missed(run), text(run), [asdict(item) for item in run.outcomes])
