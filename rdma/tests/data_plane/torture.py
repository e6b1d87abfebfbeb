"""`make torture-pager`: data plane and lenders are killed and frozen under a mostly evicted guest: no word is wrong.

The guest is a stand-in, a process whose threads write and verify words (standin_guest.c), or with GUEST=qemu a stock
QEMU without KVM, whose guest's init is that program. Seeded: what is done when, limits, the policy, what each thread
accesses; the interleaving is the machine's. The figures come last. Exits 0 only when no word was wrong, and enough
accesses were to pages that were not resident.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pondstack_rack.wait import Deadline, wait_until

from . import builds
from .lenders import TRANSPORTS, Lender
from .policies import MODELS
from .processes import DEADLINE_SECONDS, MEMORY, DataPlane, RefusedError, StandinGuest
from .qemu_guest import MEMORY as QEMU_MEMORY
from .qemu_guest import QemuGuest, initramfs

LEAST_MISSING = 0.3
"""So many of the guest's accesses must be to pages that are not resident; below, nothing was tortured."""

POINTS = ("read", "fetched", "filled", "protected", "copied", "stored", "punched")
"""The points of rdma/native at which a process can kill itself while it serves."""

PAUSE_SECONDS = 0.4
"""The longest between two faults."""

LENDER_MS = 200
"""The deadline of an access to a lender; over tcp a frozen one sometimes misses it."""

LENDERS, LEASES = 2, 2
"""At a time, and of each."""


@dataclass(frozen=True)
class Options:
    """Of one run. `ram_mib`: of a real guest, whose kernel needs some beside the `mib` that are verified."""

    minutes: float
    seed: int
    guest: str = "standin"
    driver: str = "shm"
    mib: int = 24
    limit_mib: int = 6
    ram_mib: int = 160
    threads: int = 2

    @property
    def command(self) -> str:
        """What runs the same again."""
        return f"make torture-pager MINUTES={self.minutes:g} SEED={self.seed} GUEST={self.guest} DRIVER={self.driver}"


@dataclass
class Result:
    """What happened."""

    counts: dict[str, int] = field(default_factory=dict)
    """The guest's own."""
    missing: int = 0
    """Accesses to pages that were not resident: as the stand-in counts them, or faults, counted until each kill."""
    kills: int = 0
    self_kills: int = 0
    freezes: int = 0
    limits: int = 0
    lender_kills: int = 0
    lender_freezes: int = 0
    lender_reads: int = 0
    restarts: list[float] = field(default_factory=list)
    """Seconds from the start of a process until it serves."""

    @property
    def missing_share(self) -> float:
        """Of the guest's accesses, how many were to pages that were not resident."""
        return self.missing / max(self.counts["accesses"], 1)

    @property
    def holds(self) -> bool:
        """Whether no word was wrong, and enough was at stake."""
        return self.counts["wrong"] == 0 and self.missing_share >= LEAST_MISSING


class Torturer:
    """Does one fault after another."""

    def __init__(self, options: Options, plane: DataPlane, folder: Path, dice: random.Random) -> None:
        self._options, self._plane, self._folder, self._dice = options, plane, folder, dice
        self._lenders: list[Lender] = []
        self._started = 0
        self.result = Result()

    def run(self, seconds: float) -> None:
        """Until so much time has passed."""
        pause, ends = Deadline(0.0), time.monotonic() + seconds
        self._lend()
        faults = (self.kill, self.kill, self.kill_at_a_point, self.freeze, self.limit, self.kill_lender)
        while time.monotonic() < ends:
            pause.pause(self._dice.uniform(0.0, PAUSE_SECONDS))
            self._dice.choice((*faults, self.freeze_lender))()
        self.count()

    def close(self) -> None:
        """End the lenders."""
        for lender in self._lenders:
            lender.close()

    def count(self) -> None:
        """Add up what a process has counted, before it ends."""
        with suppress(RefusedError, KeyError):  # it has ended already, or does not serve yet
            view = self._plane.view()
            self.result.missing += view["counters"]["faults"]
            self.result.lender_reads += view["store"]["lender_reads"]

    def kill(self) -> None:
        """Kill -9, anywhere, sometimes twice in a row, sometimes before it serves again."""
        self._kill()
        while self._dice.random() < 0.25:
            self._plane.start()
            Deadline(0.0).pause(self._dice.uniform(0.0, 0.02))
            self._kill(counts=False)
        self._restart()

    def kill_at_a_point(self) -> None:
        """Start a process that kills itself at a point of the code; wait for that."""
        self._kill()
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
        view = self._plane.view()
        most = _limit_mib(self._options)
        self._plane.ask(verb="limit", guest=view["guest"], limit_mib=self._dice.randint(most // 4, most))
        self.result.limits += 1

    def kill_lender(self) -> None:
        """Kill a lender; another one takes its place."""
        victim = self._lenders.pop(self._dice.randrange(len(self._lenders)))
        victim.process.kill()
        victim.close()
        self.result.lender_kills += 1
        self._lend()

    def freeze_lender(self) -> None:
        """Freeze a lender for a while: it serves, or over tcp it is waited for, or lost."""
        with self._dice.choice(self._lenders).process.frozen():
            Deadline(0.0).pause(self._dice.uniform(0.0, PAUSE_SECONDS))
        self.result.lender_freezes += 1

    def _kill(self, counts: bool = True) -> None:
        if counts:
            self.count()
        self._plane.kill()
        self.result.kills += 1

    def _restart(self) -> None:
        begun = time.monotonic()
        self._plane.start()
        self._plane.await_ready()
        self.result.restarts.append(time.monotonic() - begun)
        for lender in self._lenders:
            lender.lend(self._plane, 0)

    def _lend(self) -> None:
        while len(self._lenders) < LENDERS:
            self._started += 1
            self._lenders.append(Lender(self._folder, f"lender{self._started}", self._options.driver, LENDER_MS))
            self._lenders[-1].lend(self._plane, LEASES)


def _guest(options: Options, folder: Path, program: Path) -> StandinGuest | QemuGuest:
    if options.guest == "qemu":
        started = QemuGuest(initramfs(folder), options.mib, options.ram_mib, options.threads, options.seed)
        started.await_memory()
        return started
    return StandinGuest(program, options.mib, options.threads, options.seed, works=False)


def _limit_mib(options: Options) -> int:
    """Return the most that may be local: of a real guest less than it verifies, or it fits, and nothing leaves."""
    return options.mib * 3 // 4 if options.guest == "qemu" else options.limit_mib


def run(options: Options, folder: Path, programs: tuple[Path, Path]) -> Result:
    """Torture a guest, and have it verify all of its memory at the end, with all pages home."""
    dice = random.Random(options.seed)
    plane = DataPlane(programs[0], folder / "plane")
    plane.large_files = options.guest == "qemu"
    torturer = Torturer(options, plane, folder, dice)
    guest = _guest(options, folder, programs[1])
    try:
        plane.start()
        plane.await_ready()
        chosen = {
            "policy": dice.choice(sorted(MODELS)),
            "read_ahead_pages": dice.choice((0, 8, 32)),
            "chunk_pages": dice.choice((1, 4, 16)),
        }
        memory = MEMORY if isinstance(guest, StandinGuest) else QEMU_MEMORY
        plane.attach(guest, folder / "mirror", _limit_mib(options), memory=memory, **chosen)
        if isinstance(guest, QemuGuest):
            guest.await_ready()
        guest.begin()
        torturer.run(options.minutes * 60)
        guest.stop()
        plane.detach()
        torturer.result.counts = guest.finish()
        if isinstance(guest, StandinGuest):
            torturer.result.missing = torturer.result.counts["missing"]
        plane.stop()
        return torturer.result
    finally:
        guest.kill()
        torturer.close()
        if plane.runs:
            plane.kill()


def report(options: Options, result: Result) -> str:
    """Return the figures."""
    counts, restarts = result.counts, sorted(result.restarts) or [float("nan")]
    guest = {"standin": "a stand-in guest, a process", "qemu": "a guest of QEMU, without KVM"}[options.guest]
    return "\n".join(
        (
            f"{guest}: {options.mib} MiB are verified, at most {_limit_mib(options)} MiB local",
            f"data plane killed {result.kills} times, and {result.self_kills} times by itself at a point of the code; "
            f"frozen {result.freezes} times; {result.limits} new limits",
            f"lenders over {options.driver}: killed {result.lender_kills} times, frozen {result.lender_freezes} times; "
            f"{result.lender_reads} pages came from them, counted until each kill",
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
    parser.add_argument("--guest", choices=("standin", "qemu"), default="standin", help="a process, or a real guest")
    parser.add_argument("--driver", choices=sorted(TRANSPORTS), default="shm", help="how lenders are reached")
    chosen = parser.parse_args(arguments)
    options = Options(chosen.minutes, chosen.seed, chosen.guest, chosen.driver)
    with tempfile.TemporaryDirectory(prefix="torture-pager-") as made:
        folder = Path(made)
        plane = builds.data_plane(folder, (*builds.CRASH_POINTS, "-O2"))
        result = run(options, folder, (plane, builds.standin_guest(folder)))
    print(report(options, result))
    return 0 if result.holds else 1


if __name__ == "__main__":
    sys.exit(main())
