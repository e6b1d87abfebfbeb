"""`make torture-pager`: the data plane is killed and frozen under a guest that is mostly evicted; no word is wrong.

The guest is a stand-in, a process whose threads write and verify words (standin_guest.c), no virtual machine. Seeded:
what is done when, limits, the policy, what each thread accesses; the interleaving is the machine's. The
figures come last. Exits 0 only when no word was wrong and enough accesses were to pages that were not resident.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pondstack_rack.wait import Deadline, wait_until

from . import builds
from .policies import MODELS
from .processes import DEADLINE_SECONDS, DataPlane, StandinGuest

LEAST_MISSING = 0.3
"""So many of the guest's accesses must be to pages that are not resident; below, nothing was tortured."""

POINTS = ("read", "fetched", "filled", "protected", "copied", "stored", "punched")
"""The points of rdma/native at which a process can kill itself while it serves."""

PAUSE_SECONDS = 0.4
"""The longest between two faults."""


@dataclass(frozen=True)
class Options:
    """Of one run."""

    minutes: float
    seed: int
    mib: int = 24
    limit_mib: int = 6
    threads: int = 2
    pattern: str = "random"

    @property
    def command(self) -> str:
        """What runs the same again."""
        return f"make torture-pager MINUTES={self.minutes:g} SEED={self.seed}"


@dataclass
class Result:
    """What happened."""

    counts: dict[str, int] = field(default_factory=dict)
    """The guest's."""
    kills: int = 0
    self_kills: int = 0
    freezes: int = 0
    limits: int = 0
    restarts: list[float] = field(default_factory=list)
    """Seconds from the start of a process until it serves."""

    @property
    def missing_share(self) -> float:
        """Of the guest's accesses, how many were to pages that were not resident."""
        return self.counts["missing"] / max(self.counts["accesses"], 1)

    @property
    def holds(self) -> bool:
        """Whether no word was wrong, and enough was at stake."""
        return self.counts["wrong"] == 0 and self.missing_share >= LEAST_MISSING


class Torturer:
    """Does one fault after another."""

    def __init__(self, options: Options, plane: DataPlane, dice: random.Random) -> None:
        self._options, self._plane, self._dice = options, plane, dice
        self.result = Result()

    def run(self, seconds: float) -> None:
        """Until so much time has passed."""
        pause, ends = Deadline(0.0), time.monotonic() + seconds
        while time.monotonic() < ends:
            pause.pause(self._dice.uniform(0.0, PAUSE_SECONDS))
            self._dice.choice((self.kill, self.kill, self.kill_at_a_point, self.freeze, self.limit))()

    def kill(self) -> None:
        """Kill -9, anywhere, sometimes twice in a row, sometimes before it serves again."""
        self._plane.kill()
        self.result.kills += 1
        while self._dice.random() < 0.25:
            self._plane.start()
            Deadline(0.0).pause(self._dice.uniform(0.0, 0.02))
            self._plane.kill()
            self.result.kills += 1
        self._restart()

    def kill_at_a_point(self) -> None:
        """Start a process that kills itself at a point of the code; wait for that."""
        self._plane.kill()
        self.result.kills += 1
        point = f"{self._dice.choice(POINTS)}:{self._dice.randrange(1, 200)}"
        self._plane.start(PONDSTACK_CRASH_AT=point)
        assert wait_until(lambda: not self._plane.runs, DEADLINE_SECONDS, 0.01), f"it never came to {point}"
        assert self._plane.await_end() == -signal.SIGKILL, self._plane.log()
        self.result.self_kills += 1
        self._restart()

    def freeze(self) -> None:
        """SIGSTOP for a while: the guest waits."""
        self._plane.signal(signal.SIGSTOP)
        Deadline(0.0).pause(self._dice.uniform(0.0, PAUSE_SECONDS))
        self._plane.signal(signal.SIGCONT)
        self.result.freezes += 1

    def limit(self) -> None:
        """Give the guest less or more."""
        self._plane.await_ready()
        most = self._options.limit_mib
        self._plane.ask(verb="limit", guest=self._plane.view()["guest"], limit_mib=self._dice.randint(1, most))
        self.result.limits += 1

    def _restart(self) -> None:
        begun = time.monotonic()
        self._plane.start()
        self._plane.await_ready()
        self.result.restarts.append(time.monotonic() - begun)


def run(options: Options, folder: Path, programs: tuple[Path, Path]) -> Result:
    """Torture a guest, and have it verify all of its memory at the end, with all pages home."""
    dice = random.Random(options.seed)
    plane = DataPlane(programs[0], folder / "plane")
    guest = StandinGuest(programs[1], options.mib, options.threads, options.seed, options.pattern, works=False)
    try:
        plane.start()
        plane.await_ready()
        policy = dice.choice(sorted(MODELS))
        plane.attach(
            guest, folder / "mirror", options.limit_mib, policy=policy, read_ahead_pages=dice.choice((0, 8, 32))
        )
        torturer = Torturer(options, plane, dice)
        guest.begin()
        torturer.run(options.minutes * 60)
        plane.await_ready()
        guest.stop()
        plane.detach()
        torturer.result.counts = guest.finish()
        plane.stop()
        return torturer.result
    finally:
        guest.kill()
        if plane.runs:
            plane.kill()


def report(options: Options, result: Result) -> str:
    """Return the figures."""
    counts, restarts = result.counts, sorted(result.restarts) or [float("nan")]
    return "\n".join(
        (
            f"stand-in guest of {options.mib} MiB, at most {options.limit_mib} MiB local, {options.pattern} accesses",
            f"killed {result.kills} times, and {result.self_kills} times by itself at a point of the code; "
            f"frozen {result.freezes} times; {result.limits} new limits",
            f"serves again after {restarts[len(restarts) // 2] * 1e3:.0f} ms (median), "
            f"{restarts[-1] * 1e3:.0f} ms (worst)",
            f"{counts['accesses']} accesses, {result.missing_share:.0%} of them to pages that were not resident "
            f"(least {LEAST_MISSING:.0%}): {'ok' if result.missing_share >= LEAST_MISSING else 'MISSED'}",
            f"{counts['wrong']} wrong words (target 0): {'ok' if counts['wrong'] == 0 else 'MISSED'}",
            f"the same again: {options.command}",
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Torture with what the command line says."""
    parser = argparse.ArgumentParser(prog="make torture-pager", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long, in minutes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of what is done")
    chosen = parser.parse_args(arguments)
    options = Options(chosen.minutes, chosen.seed)
    with tempfile.TemporaryDirectory(prefix="torture-pager-") as made:
        folder = Path(made)
        plane = builds.data_plane(folder, (*builds.CRASH_POINTS, "-O2"))
        result = run(options, folder, (plane, builds.standin_guest(folder)))
    print(report(options, result))
    return 0 if result.holds else 1


if __name__ == "__main__":
    sys.exit(main())
