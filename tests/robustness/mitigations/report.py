"""The report of a run: each step by name, who was killed at it and how it ended; JSON for everything else."""

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.robustness import deaths
from tests.robustness.deaths import Run, broken, judged, left_by_nova, table
from tests.robustness.mitigations.plan import LEAST_OF_A_STEP, MITIGATIONS_JUDGED, STEPS, Kill, Place, Victim

HEAD = ("step", "kills", "of real guests", "done", "undone", "broken", "killed")
NOTE = (
    "fake compute: Nova's fake driver and real slices; its guests are no processes, and its agent, a stand-in, copies "
    "what has no pages. real guest: QEMU under libvirt, whose host refuses the copy, so that it migrates live."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a mitigation with a kill ended. `state` "": the step was not met; `broken`: what was wrong then.

    `tries`: mitigations that it took to meet the step. `stayed_local`: after stop and start, None: not tried.
    `left_by_nova`: what its operator has to put right where a nova-compute is killed while Nova migrates.
    """

    kill: Kill
    server: str = ""
    service: str = ""
    state: str = ""
    reason: str = ""
    seconds: float = 0.0
    tries: int = 1
    stayed_local: bool | None = None
    left_by_nova: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def missed(run: Run) -> list[str]:
    """Return the targets that do not hold."""
    found = broken(run, "mitigations")
    if run.count >= MITIGATIONS_JUDGED:
        met = _met(run)
        found += [
            f"'{step.name}' was met {met[step.name]} times, target {LEAST_OF_A_STEP}"
            for step in STEPS
            if met[step.name] < LEAST_OF_A_STEP
        ]
    return found


def _met(run: Run) -> Counter[str]:
    return Counter(item.kill.step.name for item in run.outcomes if item.state)


def text(run: Run) -> str:
    """Return the last lines of a run."""
    lines = table(HEAD, *(_row(run, step.name) for step in STEPS))
    met = [item for item in run.outcomes if item.state]
    struck = Counter(item.kill.victim for item in met)
    lines.append("killed: " + ", ".join(f"{victim} {struck[victim]}" for victim in Victim))
    local = [item.stayed_local for item in run.outcomes if item.stayed_local is not None]
    lines.append(f"stopped and started after its mitigation: {len(local)}; local then: {sum(local)}")
    unmet = [step.name for step in STEPS if not _met(run)[step.name]]
    if unmet:
        lines.append(f"not met: {'; '.join(unmet)}")
    lines += left_by_nova(run)
    lines.append(NOTE)
    lines.append(f"seed {run.seed}: {len(met)} kills met their step of {len(run.outcomes)} in {run.seconds:.0f} s")
    return judged(lines, missed(run))


def _row(run: Run, name: str) -> tuple[str, ...]:
    mine = [item for item in run.outcomes if item.kill.step.name == name and item.state]
    done = sum(item.state == "done" for item in mine)
    guests = sum(item.kill.place is Place.GUEST for item in mine)
    victims = Counter(str(item.kill.victim) for item in mine)
    amiss = sum(bool(item.broken) for item in mine)
    killed = ", ".join(f"{victim} {count}" for victim, count in sorted(victims.items()))
    return (name, *map(str, (len(mine), guests, done, len(mine) - done, amiss)), killed or "-")


def save(run: Run, folder: Path) -> None:
    """Write report.json and report.txt."""
    deaths.save(
        run, folder, missed(run), text(run), [{**asdict(item), "step": item.kill.step.name} for item in run.outcomes]
    )
