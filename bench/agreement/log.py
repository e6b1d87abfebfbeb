"""The log of a replay: hosts, pools while it went on, where each server went, how Nova weighed. JSON, a line each.

Times are seconds since the replay began.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from bench.agreement.decision import Decision

VERSION = 2


class BadLog(ValueError):
    """The file is no log of a replay; the text names the line."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host with what was free there, as Placement may give it out; `pool`: the one that it reaches, "" for none."""

    name: str
    vcpus: int
    memory_mib: int
    pool: str


@dataclass(frozen=True, slots=True)
class Look:
    """A pool at one moment. `free`: slices in that state; `returning`: those that were given up and are on their way.

    `give_back_seconds`: that slices need to come back.
    """

    at: float
    pool: str
    slice_mib: int
    free: int
    returning: int
    buffer: int
    give_back_seconds: float


@dataclass(frozen=True, slots=True)
class Placement:
    """A server: asked for, seen started or refused, told to leave, seen gone; None: it was not.

    `host` "": it was refused, which `reason` tells, as all that failed. `source`: of its split, "" where none was told.
    """

    number: int
    server: str
    vcpus: int
    memory_mib: int
    asked: float
    seen: float
    leaving: float | None
    gone: float | None
    host: str
    pool_mib: int
    source: str
    rejected: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Log:
    """A whole replay; `placements` in the order in which they were asked for, `looks` in that of time.

    `about`: what was replayed and how, for people. `static_percent`: of the policy that decided splits.
    `decisions`: nova-scheduler's, by server.
    """

    about: str
    static_percent: int
    hosts: Sequence[Host]
    looks: Sequence[Look]
    placements: Sequence[Placement]
    decisions: Mapping[str, Decision]

    def write(self, path: Path) -> None:
        """Write it, as a whole or not at all; raises OSError."""
        head = {"version": VERSION, "about": self.about, "static_percent": self.static_percent}
        new = path.with_name(f"{path.name}.new")
        with new.open("w") as file:
            for kind, items in (
                ("run", [head]),
                ("host", map(asdict, self.hosts)),
                ("look", map(asdict, self.looks)),
                ("placement", map(asdict, self.placements)),
                ("decision", map(asdict, self.decisions.values())),
            ):
                file.writelines(f"{json.dumps({'kind': kind, **item})}\n" for item in items)
        new.replace(path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read it; raises BadLog, OSError."""
        makers: Mapping[str, Any] = {
            "run": dict,
            "host": Host,
            "look": Look,
            "placement": Placement,
            "decision": Decision,
        }
        found: dict[str, list[Any]] = {kind: [] for kind in makers}
        with path.open() as file:
            for number, line in enumerate(file, 1):
                try:
                    item = json.loads(line)
                    kind = item.pop("kind")
                    found[kind].append(makers[kind](**item))
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise BadLog(f"{path}, line {number}: {error!r}; make replay LOG=... writes such files") from None
        if len(found["run"]) != 1 or found["run"][0].get("version") != VERSION:
            raise BadLog(f"{path} has no header of version {VERSION}: make replay LOG=... writes such files")
        if not found["host"] or not found["placement"]:
            raise BadLog(f"{path} has no hosts or no placements: nothing was replayed")
        head = found["run"][0]
        placements = sorted(found["placement"], key=lambda item: item.asked)
        looks = sorted(found["look"], key=lambda item: item.at)
        decisions = {item.server: item for item in found["decision"]}
        return cls(head["about"], head["static_percent"], found["host"], looks, placements, decisions)


def first_looks(looks: Iterable[Look]) -> dict[str, Look]:
    """Return the first look at each pool."""
    found: dict[str, Look] = {}
    for look in looks:
        found.setdefault(look.pool, look)
    return found
