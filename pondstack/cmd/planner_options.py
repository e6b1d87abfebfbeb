"""The command line of pondstack-planner. Every setting of the planner is an option of `run`."""

import argparse
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pondstack.domain.errors import BadRequest
from pondstack.planner.settings import Settings
from pondstack.planner.traces.formats import CLOUDS, LOADERS

if TYPE_CHECKING:
    from pondstack.planner.traces.imported import Hosts


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    found = argparse.ArgumentParser(
        prog="pondstack-planner", description="What pooling would save a cloud, by a replay of its own history."
    )
    verbs = found.add_subparsers(dest="verb", required=True)
    _add_import(verbs.add_parser("import", help="write a trace as Parquet, with where it is from and what was dropped"))
    _add_run(verbs.add_parser("run", help="replay a trace, or a generated one, and answer"))
    again = verbs.add_parser("report", help="summary and page of answers that run --json wrote")
    again.add_argument("answers", type=Path, help="the JSON file")
    again.add_argument("--html", type=Path, metavar="FILE", help="write the page there")
    return found


def settings(wanted: argparse.Namespace, hosts: "Hosts | None") -> Settings:
    """Return the settings of a command line; of the trace's hosts where nothing else is said. Raises BadRequest."""
    given = {
        item.name: getattr(wanted, item.name)
        for item in fields(Settings)
        if getattr(wanted, item.name, None) is not None
    }
    found = (0, 0, 0) if hosts is None else (hosts.number, hosts.vcpus, hosts.memory_mib)
    told = dict(zip(("number", "vcpus", "memory_mib"), found, strict=True))
    try:
        return Settings.of_hosts(given, **told, sockets_per_host=wanted.sockets_per_host)
    except (TypeError, ValueError) as error:
        raise BadRequest(str(error)) from error


def _add_import(parser: argparse.ArgumentParser) -> None:
    sources = parser.add_subparsers(dest="format", required=True, metavar="FORMAT")
    for name, (_, about) in LOADERS.items():
        source = sources.add_parser(name, help=about)
        source.add_argument("source", help="the file, gzip'd or not, or the folder")
        _add_output(source)
        _add_source_options(source)

    for name, about in CLOUDS.items():
        cloud = sources.add_parser(name, help=about)
        if name == "database":
            cloud.add_argument("source", help="URL of SQLAlchemy, or a file with one in each line, for passwords")
        else:
            cloud.add_argument("--os-cloud", metavar="NAME", help="of clouds.yaml (default: that of the OS_ variables)")
        cloud.add_argument("--window-days", type=float, default=30.0, help="how far back (default: %(default)s)")
        cloud.add_argument("--name", default="", help="of the trace, in reports (default: the format's)")
        _add_output(cloud)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="Parquet file to write")


def _add_source_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="", help="of the trace, in reports (default: the file's name)")
    parser.add_argument(
        "--trace-seed", type=int, default=1, help="of what is drawn or generated (default: %(default)s)"
    )
    parser.add_argument(
        "--end-seconds",
        type=int,
        metavar="SECONDS",
        help="end of the trace, in the source's time (default: its latest)",
    )
    parser.add_argument(
        "--host-vcpus", type=int, default=0, metavar="VCPUS", help="of a host, for formats with shares of hosts"
    )
    parser.add_argument(
        "--host-gib", type=float, default=0.0, metavar="GIB", help="memory of a host, for formats with shares of hosts"
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", nargs="?", type=Path, help="trace to replay (default: the generated one, SYNTHETIC)")
    parser.add_argument("--format", choices=LOADERS, help="of the trace (default: told by its name)")
    _add_source_options(parser)
    parser.add_argument("--servers", type=int, default=20_000, help="to generate (default: %(default)s)")
    parser.add_argument("--days", type=int, default=14, help="to generate (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all answers there")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report there")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=int, help="processes at once on this machine (default: 1)")
    where.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run the parts on all CPUs of a cluster: dask://HOST:PORT of a scheduler of Dask, or ray://HOST:PORT of a "
        "server of Ray Client",
    )
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep finished parts there, and go on from them")
    parser.add_argument("--sockets-per-host", type=int, default=2, help="of imported hosts (default: %(default)s)")
    group = parser.add_argument_group("settings")
    for item in fields(Settings):
        _add_setting(group, item)


def _add_setting(group: Any, item: "Field[Any]") -> None:
    about, default = item.metadata, item.default
    many = isinstance(default, tuple)
    kind = type(default[0] if isinstance(default, tuple) else default)
    shown = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
    unit = f" in {about['unit']}" if about["unit"] else ""
    group.add_argument(
        f"--{item.name.replace('_', '-')}",
        type=_many(kind) if many else kind,
        metavar="VALUE,..." if many else "VALUE",
        help=f"{about['help']}{unit} (default: {shown}; {about['source']})".replace("%", "%%"),
    )


def _many(kind: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    def values(text: str) -> tuple[Any, ...]:
        return tuple(kind(part) for part in text.split(",") if part)

    return values
