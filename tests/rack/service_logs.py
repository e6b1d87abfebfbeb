"""What the rack's services logged while a test failed: the rack goes with the run, and its logs with it."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

LINES = 30
"""Of one service: the last ones."""
WIDTH = 300
TIME = len("2026-11-26 16:21:17.157")
TOLD = frozenset({"WARNING", "ERROR", "CRITICAL"})
OURS = "pondstack-"
"""Of our own services also what is INFO, which is quiet at idle."""


def told_since(folder: Path, moment: float) -> Iterator[tuple[str, list[str]]]:
    """Yield (service, its last lines of note) of those that logged some since a time (seconds since the epoch)."""
    since = datetime.fromtimestamp(moment).isoformat(" ", "milliseconds")
    for path in sorted(folder.glob("*.log")):
        levels = TOLD | {"INFO"} if path.name.startswith(OURS) else TOLD
        lines = path.read_text(errors="replace").splitlines()
        if found := [line[:WIDTH] for line in lines if _is_of_note(line, since, levels)]:
            yield path.stem, found[-LINES:]


def _is_of_note(line: str, since: str, levels: frozenset[str]) -> bool:
    """Tell it of a line of oslo.log: date, time, process, level, and the rest."""
    words = line.split(None, 4)
    return len(words) == 5 and words[3] in levels and since <= line[:TIME]
