"""The report of a run: each victim by name, at which steps it died and how the migrations ended; JSON for the rest."""

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.robustness import deaths
from tests.robustness.deaths import Run, broken, judged, left_by_nova, table
from tests.robustness.moves.plan import LEAST_OF_A_VICTIM, MOVES_JUDGED, Kill, Step, Victim

HEAD = ("who", "met", "killed", "frozen", "moved", "stayed", "broken", "at")
NOTE = (
    "a real guest under libvirt (QEMU without KVM) with three quarters of its memory remote, which verifies what it "
    "wrote; two hosts of one machine, whose lender's memory is shared memory"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a live migration ended. `end` '': its step was not met, else moved or stayed.

    `tries`: migrations that it took to meet the step. `left_by_nova`: what its operator has to put right where a
    nova-compute died.
    """

    kill: Kill
    server: str = ""
    service: str = ""
    end: str = ""
    seconds: float = 0.0
    tries: int = 1
    left_by_nova: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def missed(run: Run) -> list[str]:
    """Return the targets that do not hold."""
    found = broken(run, "moves")
    if run.count >= MOVES_JUDGED:
        met = Counter(item.kill.victim for item in run.outcomes if item.end)
        found += [
            f"'{victim}' was met {met[victim]} times, target {LEAST_OF_A_VICTIM}"
            for victim in Victim
            if met[victim] < LEAST_OF_A_VICTIM
        ]
    return found


def text(run: Run) -> str:
    """Return the last lines of a run."""
    lines = table(HEAD, *(_row(run, victim) for victim in Victim))
    lines += left_by_nova(run)
    lines.append(NOTE)
    met = sum(bool(item.end) for item in run.outcomes)
    lines.append(f"seed {run.seed}: {met} deaths met their step of {len(run.outcomes)} in {run.seconds:.0f} s")
    return judged(lines, missed(run))


def _row(run: Run, victim: Victim) -> tuple[str, ...]:
    mine = [item for item in run.outcomes if item.kill.victim is victim and item.end]
    acts, ends = Counter(str(item.kill.act) for item in mine), Counter(item.end for item in mine)
    steps = Counter(item.kill.step for item in mine)
    amiss = sum(bool(item.broken) for item in run.outcomes if item.kill.victim is victim)
    numbers = (len(mine), acts["kill -9"], acts["freeze"], ends["moved"], ends["stayed"], amiss)
    where = ", ".join(f"{step.name.lower()} {steps[step]}" for step in Step if steps[step])
    return (str(victim), *map(str, numbers), where or "-")


def save(run: Run, folder: Path) -> None:
    """Write report.json and report.txt."""
    deaths.save(run, folder, missed(run), text(run), [asdict(item) for item in run.outcomes])
