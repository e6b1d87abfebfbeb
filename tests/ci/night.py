"""`make night`: all tests with new seeds, all that kills and pauses under the freezer, the planted faults.

A part that fails keeps no other one from running: nobody is there to start it. The last lines tell how long each took,
and what came of it; exits 0 only when all are good.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXPLORING = {"NIGHT": "1", "PONDSTACK_SEED": "random"}


@dataclass(frozen=True, slots=True)
class Part:
    """One command of the night, and what it finds in its environment besides."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def parts(workers: str, pytest_arguments: Sequence[str]) -> dict[str, Part]:
    """Return all parts by name; make has its own variables (FREEZE, EVERY, FILES) for those that are its targets."""
    return {
        "tests": Part([sys.executable, "-m", "pytest", "-n", workers, *pytest_arguments], EXPLORING),
        "stalls": Part(["make", "--no-print-directory", "stalls"]),
        "mutants": Part(["make", "--no-print-directory", "mutants"]),
    }


def run(wanted: Mapping[str, Part]) -> int:
    """Run parts one after the other; return the exit code."""
    lines, good = [], True
    began = time.monotonic()
    for name, part in wanted.items():
        print(f"\n== {name}: {' '.join(part.command)}", flush=True)
        started = time.monotonic()
        code = subprocess.run(part.command, cwd=ROOT, env={**os.environ, **part.environment}, check=False).returncode
        good = good and code == 0
        lines.append(f"{name:8} {_minutes(started)}  {'good' if code == 0 else f'NOT GOOD: exit {code}'}")
    print("\n" + "\n".join(lines))
    print(f"{'night':8} {_minutes(began)}  {'good' if good else 'NOT GOOD'}", flush=True)
    return 0 if good else 1


def _minutes(since: float) -> str:
    minutes, seconds = divmod(round(time.monotonic() - since), 60)
    return f"{minutes:4}:{seconds:02}"


def main(arguments: Sequence[str]) -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(prog="make night", description=__doc__, allow_abbrev=False)
    parser.add_argument("--workers", default="3", help="of pytest (default 3)")
    parser.add_argument("--parts", default="", help="of tests,stalls,mutants (default: all)")
    chosen, rest = parser.parse_known_args(arguments)
    every = parts(chosen.workers, rest)
    names = [name for name in chosen.parts.split(",") if name] or list(every)
    if unknown := [name for name in names if name not in every]:
        parser.error(f"--parts {unknown[0]}: choose of {', '.join(every)}")
    return run({name: every[name] for name in names})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
