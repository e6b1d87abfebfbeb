"""What reports of runs share in which somebody dies at each step of something, on a rack: verdict, table and files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `outcomes`: what came of each death; `unclean`: what was left over at the end."""

    seed: int
    count: int
    outcomes: Sequence[Any]
    unclean: Sequence[str]
    seconds: float


def broken(run: Run, noun: str) -> list[str]:
    """Return the targets of any run that do not hold; `noun`: what it does, in the plural."""
    wrong = [item for item in run.outcomes if item.broken]
    found = [f"{len(wrong)} {noun} broke a promise, target 0"] if wrong else []
    found += [f"{len(run.unclean)} leftovers at the end, target 0"] if run.unclean else []
    if len(run.outcomes) < run.count:
        found.append(f"ended early: {len(run.outcomes)} of {run.count} {noun}")
    return found


def table(*rows: Sequence[str]) -> list[str]:
    """Return the lines of a table, the first one its head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [" | ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "-|-".join("-" * width for width in widths), *lines[1:]]


def left_by_nova(run: Run) -> list[str]:
    """Return the lines of what Nova's operator had to do."""
    nova = [thing for item in run.outcomes for thing in item.left_by_nova]
    head = f"left by Nova after deaths of nova-compute, and put right as its operator does: {len(nova)}"
    return [head, *(f"  {thing}" for thing in nova)]


def judged(lines: Sequence[str], faulty: Sequence[str]) -> str:
    """Return the last lines of a run, with its verdict."""
    return "\n".join([*lines, f"FAILED: {'; '.join(faulty)}" if faulty else "OK: every target holds"])


def save(run: Run, folder: Path, faulty: Sequence[str], text: str, outcomes: Sequence[Mapping[str, Any]]) -> None:
    """Write report.json and report.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    head = {"seed": run.seed, "count": run.count, "seconds": run.seconds}
    data = {**head, "missed": faulty, "unclean": list(run.unclean), "outcomes": outcomes}
    (folder / "report.json").write_text(json.dumps(data, indent=1) + "\n")
    (folder / "report.txt").write_text(text + "\n")
