"""What a failing history looks like to whoever has to understand it, and the figures of many histories."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from .plan import History
from .run import Outcome


def command(seed: int, kind: str = "slices") -> str:
    """Return the one command that replays a history."""
    return f"make sim HISTORIES=1 SEED={seed}" + (f" KIND={kind}" if kind != "slices" else "")


def story(outcome: Outcome, shrunken: Outcome) -> str:
    """Return what was wrong, how to replay it, and the shortest history that still goes wrong."""
    history = shrunken.history
    lines = [
        f"VIOLATION {outcome.code} in history {outcome.history.seed}: {outcome.detail}",
        f"replay: {command(outcome.history.seed, _kind(history))}",
        f"shortened from {len(outcome.history.operations)} operations and {len(outcome.history.faults)} faults to "
        f"{len(history.operations)} and {len(history.faults)}: {shrunken.code}: {shrunken.detail}",
        f"controllers {', '.join(history.controllers)}; hosts {', '.join(history.hosts)}; slices {history.pools}; "
        f"buffer {history.buffer_slices}",
        *(f"  operation {step}" for step in history.operations),
        *(f"  fault     {step}" for step in history.faults),
        "trace:",
        *(f"  {line}" for line in shrunken.trace),
    ]
    return "\n".join(lines)


def _kind(history: History) -> str:
    if history.plans:
        return "plans"
    if history.guests:
        return "guests"
    if history.holding:
        return "holding"
    return "lending" if history.lending else "removal" if history.removal else "slices"


_ACKNOWLEDGED = {
    "lending": "loans acknowledged",
    "guests": "loans acknowledged",
    "plans": "loans acknowledged",
    "mitigation": "servers mitigated",
}


@dataclass(slots=True)
class Figures:
    """Sums over histories of a kind."""

    kind: str = "slices"
    histories: int = 0
    steps: int = 0
    acknowledged: int = 0
    virtual_seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    failed_seeds: list[int] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count a history."""
        self.histories += 1
        self.steps += outcome.steps
        self.acknowledged += outcome.acknowledged
        self.virtual_seconds += outcome.virtual_seconds
        self.faults += outcome.faults
        if outcome.code:
            self.violations[outcome.code] += 1
            self.failed_seeds.append(outcome.history.seed)

    def merge(self, other: "Figures") -> None:
        """Add the sums of others."""
        self.histories += other.histories
        self.steps += other.steps
        self.acknowledged += other.acknowledged
        self.virtual_seconds += other.virtual_seconds
        self.faults += other.faults
        self.violations += other.violations
        self.failed_seeds += other.failed_seeds

    def text(self, real_seconds: float, first_seed: int) -> str:
        """Return the figures for people, the violations last."""
        lines = [f"{self.kind}, faults injected: {sum(self.faults.values())}"]
        lines += [f"  {count:>9} {kind}" for kind, count in sorted(self.faults.items(), key=lambda item: -item[1])]
        lines += [
            f"histories: {self.histories} (seeds {first_seed} to {first_seed + self.histories - 1})",
            f"steps: {self.steps}",
            f"virtual time: {self.virtual_seconds / 3600:.1f} h, real time: {real_seconds:.1f} s",
            f"histories per minute: {self.histories / max(real_seconds, 1e-9) * 60:.0f}",
            f"{_ACKNOWLEDGED.get(self.kind, 'attaches acknowledged')}: {self.acknowledged}",
            f"violations: {sum(self.violations.values())}"
            + "".join(f"\n  {count:>9} {code}" for code, count in self.violations.most_common()),
        ]
        return "\n".join(lines)


class Progress:
    """How far it is: a line that is written over on a terminal, and elsewhere one each half minute."""

    _EVERY_SECONDS = 30.0

    def __init__(self, total: int) -> None:
        self._total = total
        self._terminal = sys.stderr.isatty()
        self._next = self._EVERY_SECONDS

    def show(self, kinds: Sequence[Figures], real_seconds: float) -> None:
        """Show how far it is."""
        if not self._terminal and real_seconds < self._next:
            return
        self._next = real_seconds + self._EVERY_SECONDS
        done = sum(figures.histories for figures in kinds)
        found = sum(sum(figures.violations.values()) for figures in kinds)
        rate = done / max(real_seconds, 1e-9) * 60
        line = f"{done}/{self._total} histories, {rate:.0f} a minute, {found} violations"
        for figures in kinds:
            if figures.failed_seeds:
                newest = ", ".join(map(str, figures.failed_seeds[-3:]))
                line += f" ({figures.kind}, seeds {newest})"
        sys.stderr.write(f"\r{line} " if self._terminal else f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._terminal:
            sys.stderr.write("\n")
