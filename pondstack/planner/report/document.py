"""Answers as JSON, with the command that made them and where the trace is from. The report is made of nothing else."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from pondstack.domain.errors import BadRequest
from pondstack.planner.answers import Answers
from pondstack.planner.traces.imported import Imported

VERSION = 2
KEYS = ("version", "command", "made_at", "trace", "answers")
Document = dict[str, Any]


def made(found: Imported, answers: Answers, command: str, made_at: datetime) -> Document:
    """Return the document."""
    trace = found.trace
    return {
        "version": VERSION,
        "command": command,
        "made_at": made_at.isoformat(timespec="seconds"),
        "trace": {
            "name": trace.name,
            "origin": trace.origin,
            "rows": found.rows,
            "servers": trace.servers.height,
            "end_of_trace_seconds": trace.end_of_trace_seconds,
            "dropped": [asdict(item) for item in trace.dropped],
            "notes": list(found.notes),
            "hosts": None if found.hosts is None else asdict(found.hosts),
        },
        "answers": asdict(answers),
    }


def write(document: Document, path: Path) -> None:
    """Write it whole or not at all; raises OSError."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(f"{json.dumps(document, indent=1)}\n")
    new.replace(path)


def read(path: Path) -> Document:
    """Read one that was written. Raises BadRequest for what is none, OSError."""
    try:
        document = json.loads(path.read_text())
        missing = [key for key in KEYS if key not in document]
    except (ValueError, TypeError) as error:
        raise BadRequest(f"{path} is no JSON of pondstack-planner run: {error}") from error
    if missing:
        raise BadRequest(f"{path} lacks {', '.join(missing)}: give the file that pondstack-planner run --json wrote")
    if document["version"] != VERSION:
        raise BadRequest(f"{path} is of version {document['version']}, and {VERSION} is known: run it again")
    return dict(document)
