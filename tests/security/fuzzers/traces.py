"""The planner's formats, malformed, unsorted, repeated and cut off: rows and reasons, or a refusal; no guess, no crash.

Each step damages a sample of each format and imports it. What is taken has to be sound as a trace, and every row has to
be a server, or be told of as dropped or as not needed. Row order and repeated rows are damages of their own.
"""

import gzip
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import polars

from pondstack.domain.errors import PondError
from pondstack.planner.traces import formats, nova_database
from pondstack.planner.traces.imported import Imported, Options
from pondstack.planner.traces.instances import Window
from tests.security.fuzzers import trace_samples
from tests.security.fuzzers.mutations import spoilt, strange
from tests.security.fuzzers.target import ACCEPTED, REFUSED, Target

DATABASE, FOLDER = nova_database.NAME, "bitbrains"
NAMES = (*formats.LOADERS, DATABASE)
OPTIONS = Options("fuzz", host_vcpus=64, host_gib=256.0)
WINDOW = Window(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
BY_VM = ("bitbrains", "bitbrains-hourly")
TOLD = re.compile(r"(\d+) events tell of \d+ runs; (\d+) other events were not needed")


def damaged(dice: Random, data: bytes) -> bytes:
    """Return a text with lines in another order, repeated, missing, cut off or with other fields, or other bytes."""
    lines = data.splitlines(keepends=True)
    act = dice.randrange(7)
    if act == 0:
        dice.shuffle(lines)
    elif act == 1:
        lines += dice.choices(lines, k=dice.randint(1, 5))
    elif act == 2:
        lines = dice.sample(lines, dice.randint(0, len(lines)))
    elif act == 3:
        return data[: dice.randrange(len(data))]
    elif act in (4, 5):
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(lines))
            lines[at] = _with_other_field(dice, lines[at])
    else:
        return spoilt(dice, data)
    return b"".join(lines)


def _with_other_field(dice: Random, line: bytes) -> bytes:
    parts = re.split(rb"([,;{}:]\s*)", line.rstrip(b"\n"))
    at = dice.randrange(len(parts))
    parts[at] = dice.choice((parts[at] * 2, b"", str(strange(dice)).encode("utf-8", "replace")))
    return b"".join(parts) + b"\n"


class Traces(Target):
    """All formats, one after the other."""

    name = "traces"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._folder = Path(self.opened.enter_context(tempfile.TemporaryDirectory()))
        self._samples = {name: trace_samples.sample(name, self._folder) for name in NAMES}
        for name, data in self._samples.items():
            found = self._imported(name, data, honest=True)
            if found is None or found.trace.dropped:
                self.fault(f"an honest trace of {name} is refused, or rows of it are dropped")

    def attack(self) -> None:
        """Damage and import a sample of each format."""
        for name, data in self._samples.items():
            binary = name in trace_samples.FILES
            made = spoilt(self.dice, data) if binary else damaged(self.dice, data)
            found = self._imported(name, made)
            self.note(REFUSED if found is None else ACCEPTED)
            if found is not None:
                self._check(name, found)

    def _imported(self, name: str, data: bytes, *, honest: bool = False) -> Imported | None:
        """Return what an import makes of it, None where it refuses."""
        path = self._folder / "damaged"
        packed = name in trace_samples.TEXTS and not honest and self.dice.random() < 0.3
        if name == FOLDER:
            path = self._folder / "vms"
            path.mkdir(exist_ok=True)
            (path / "1.csv").write_bytes(data)
        elif packed:
            path = path.with_suffix(".gz")
            whole = gzip.compress(data)
            path.write_bytes(whole[: self.dice.randrange(len(whole))] if self.dice.random() < 0.1 else whole)
        else:
            path.write_bytes(data)
        try:
            if name == DATABASE:
                return nova_database.read(f"sqlite:///{path}", WINDOW, OPTIONS)
            return formats.read(path, name, OPTIONS)
        except PondError as refusal:
            if not str(refusal.message):
                self.fault(f"{name} is refused without a word")
            return None
        except polars.exceptions.PanicException as panic:
            raise AssertionError(f"{name}: {panic}") from panic

    def _check(self, name: str, found: Imported) -> None:
        servers, end = found.trace.servers, found.trace.end_of_trace_seconds
        late = (polars.col("end_seconds") < polars.col("start_seconds")) | (polars.col("end_seconds") > end)
        wrong = late.fill_null(False) | (polars.col("start_seconds") > end)
        wrong |= ~(polars.col("vcpus") > 0) | ~(polars.col("memory_mib") > 0)
        if not servers["start_seconds"].is_sorted() or servers["start_seconds"][0] != 0:
            self.fault(f"{name}: servers are not in the order of their starts from 0 on")
        if not servers.filter(wrong).is_empty():
            self.fault(f"{name}: {servers.filter(wrong).row(0)} is no server")
        if any(item.rows < 1 or item.first_row < 1 for item in found.trace.dropped):
            self.fault(f"{name}: {found.trace.dropped} has no row that one could look at")
        dropped = sum(item.rows for item in found.trace.dropped)
        told = next((match for note in found.notes if (match := TOLD.match(note))), None)
        known = servers.height if told is None else int(told[1]) + int(told[2])
        if name not in BY_VM and found.rows > known + dropped:
            self.fault(f"{name}: of {found.rows} rows {known} count and {dropped} were dropped")
