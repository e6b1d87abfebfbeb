"""`pondstack-planner import|run|report`: what pooling would save a cloud, by a replay of its own history.

Nothing of pondstack has to run, and no hardware has to be there. `import` writes a trace as Parquet, `run` replays one
and answers, `report` makes the page again from saved answers. It needs the extra `planner`.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pondstack.cmd import planner_options
from pondstack.domain.errors import BadRequest, PondError, Unavailable
from pondstack.planner.traces import formats

if TYPE_CHECKING:
    from pondstack.planner.answers import Answers
    from pondstack.planner.traces.imported import Imported

PROGRAM = "pondstack-planner"
MOST_DAYS = 3650
PACKAGES = ("jinja2", "joblib", "matplotlib", "numba", "numpy", "polars")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 with what is wrong on stderr, 2 for a wrong command line, 130 where it was interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    wanted = planner_options.parser().parse_args(given)
    try:
        _check_installed()
        _check_outputs(wanted)
        lines = {"import": import_, "run": run, "report": report}[wanted.verb](wanted, given)
    except (PondError, OSError) as error:
        print(f"{PROGRAM}: {error.message if isinstance(error, PondError) else error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted; with --cache, the same command goes on from there", file=sys.stderr)
        return 130
    print("\n".join(lines))
    return 0


def import_(wanted: argparse.Namespace, _given: Sequence[str]) -> list[str]:
    """Write a trace as Parquet; returns what it has."""
    from pondstack.planner.traces import plain

    in_cloud = wanted.format in formats.CLOUDS
    found = _of_cloud(wanted) if in_cloud else _read(wanted, Path(wanted.source), wanted.format)
    plain.write(found, wanted.output)
    return _about(found, wanted.output)


def run(wanted: argparse.Namespace, given: Sequence[str]) -> list[str]:
    """Replay a trace; returns the summary."""
    from pondstack.planner.report import document, summary

    # A trace may take minutes to be read: whether there is a cluster is known before.
    with _cluster(wanted.cluster):
        answers = _answers(wanted)
    made = document.made(*answers, shlex.join([PROGRAM, *given]), datetime.now(UTC))
    if wanted.json:
        document.write(made, wanted.json)
    return [*summary.lines(made), *_page(made, wanted.html)]


def report(wanted: argparse.Namespace, _given: Sequence[str]) -> list[str]:
    """Make the report of saved answers; returns the summary."""
    from pondstack.planner.report import document, summary

    made = document.read(wanted.answers)
    try:
        return [*summary.lines(made), *_page(made, wanted.html)]
    except (KeyError, TypeError, IndexError) as error:
        raise BadRequest(f"{wanted.answers} is damaged, or of another release ({error!r}): run it again") from error


def _cluster(address: str | None) -> AbstractContextManager[None]:
    if address is None:
        return nullcontext()
    from pondstack.planner import backends

    return backends.connected(address)


def _answers(wanted: argparse.Namespace) -> tuple["Imported", "Answers"]:
    from pondstack.planner.answers import answer

    found = _trace(wanted)
    settings = planner_options.settings(wanted, found.hosts)
    try:
        return found, answer(found.trace, settings, jobs=wanted.jobs, cache=wanted.cache, progress=_progress)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    finally:
        if sys.stderr.isatty():
            print(file=sys.stderr)


def _trace(wanted: argparse.Namespace) -> "Imported":
    from pondstack.planner.traces import synthetic

    if wanted.trace is None:
        model = synthetic.Model(wanted.servers, wanted.days)
        return synthetic.generate(model, wanted.trace_seed, wanted.name)
    return _read(wanted, wanted.trace, wanted.format or formats.guessed(wanted.trace))


def _of_cloud(wanted: argparse.Namespace) -> "Imported":
    from pondstack.planner.traces import cloud, nova_database
    from pondstack.planner.traces.imported import Options
    from pondstack.planner.traces.instances import Window

    if not 0 < wanted.window_days <= MOST_DAYS:
        raise BadRequest(f"--window-days is {wanted.window_days:g}; it must be over 0 and up to {MOST_DAYS}")
    now = datetime.now(UTC)
    window, options = Window(now - timedelta(days=wanted.window_days), now), Options(wanted.name or wanted.format)
    if wanted.format == nova_database.NAME:
        return nova_database.read(wanted.source, window, options)
    history = wanted.format == cloud.PONDSTACK
    return cloud.Cloud.connected(wanted.os_cloud, history=history).trace(window, options)


def _read(wanted: argparse.Namespace, source: Path, name: str) -> "Imported":
    from pondstack.planner.traces.imported import Options

    told = {item.name: getattr(wanted, item.name) for item in fields(Options) if hasattr(wanted, item.name)}
    return formats.read(source, name, Options(**{**told, "seed": wanted.trace_seed}))


def _about(found: "Imported", output: Path) -> list[str]:
    from pondstack.planner.report import text

    trace = found.trace
    label = ["SYNTHETIC trace: a model, no cloud"] if trace.origin == "synthetic" else []
    dropped = [f"  {item.rows:,} rows dropped: {item.reason} (first: row {item.first_row})" for item in trace.dropped]
    return [
        *label,
        f"{trace.servers.height:,} servers of {found.rows:,} rows in {text.days(trace.end_of_trace_seconds)}: {output}",
        *dropped,
        *(f"  {note}" for note in found.notes),
    ]


def _page(made: Any, path: Path | None) -> list[str]:
    if path is None:
        return []
    from pondstack.planner.report import page

    new = path.with_name(f"{path.name}.new")
    new.write_text(page.html(made))
    new.replace(path)
    return [f"Report: {path}"]


def _progress(done: int, parts: int) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{done} of {parts} parts", end="", file=sys.stderr, flush=True)


def _check_outputs(wanted: argparse.Namespace) -> None:
    """Raise BadRequest before anything is computed for a file that could not be written afterwards."""
    for path in (getattr(wanted, name, None) for name in ("output", "json", "html")):
        if path is not None and not path.parent.is_dir():
            raise BadRequest(f"{path} cannot be written: {path.parent} is no folder")


def _check_installed() -> None:
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise Unavailable(f"{', '.join(missing)} is not installed: pip install 'pondstack[planner]'")
    # Charts need no window, and no folder for fonts that cannot be written.
    os.environ.setdefault("MPLBACKEND", "svg")
