"""What the models say, computed ahead for each project and size, as plain JSON types. Pure.

The table travels to whoever places instances; pondstack.prediction.flow reads it without any model.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from pondstack.prediction.balance import Balance
from pondstack.prediction.features import History, Request, Vocabulary, spread, vector
from pondstack.prediction.flow import KIND
from pondstack.prediction.trainer import ShareModel, balance_as_json, shares
from pondstack.prediction.untouched import SPREAD
from pondstack.prediction.untouched_table import COLD, size_key

DIGITS = 4

Part = dict[str, Any]
"""What one model says: its `version`, and `projects`: a project to sizes to figures."""


def untouched(
    model: ShareModel,
    version: str,
    manifest: dict[str, Any],
    history: History,
    requests: Iterable[Request],
    as_of: datetime,
) -> Part:
    """Return what stays untouched: share, records, least and spread of them; for "" of all projects without history.

    `requests`: what was asked for lately, the newest last; each size also gets an entry for projects without history.
    """
    wanted: dict[tuple[str, str], Request] = {}
    for item in requests:
        size = size_key(item.memory_mib, item.vcpus)
        wanted[COLD, size] = replace(item, project_id=COLD, image_os="", zone="")
        if history.before(item.project_id, as_of):
            wanted[item.project_id, size] = item
    known = [history.before(project, as_of) if project else [] for project, _ in wanted]
    words = Vocabulary(**{name: tuple(values) for name, values in manifest["words"].items()})
    rows = [vector(item, records, as_of, words) for item, records in zip(wanted.values(), known, strict=True)]
    projects: dict[str, dict[str, list[Any]]] = {}
    for (project, size), records, share in zip(wanted, known, shares(model, rows), strict=True):
        least = _floor(min(item.share for item in records)) if records else None
        spread_of = _ceil(spread(records, SPREAD))
        projects.setdefault(project, {})[size] = [_floor(share), len(records), least, spread_of]
    return {"version": version, "projects": projects}


def join(
    untouched: Part | None,
    sensitivity: Part | None,
    chosen: Mapping[str, Balance],
    *,
    percent: int,
    min_local_percent: int,
) -> dict[str, Any]:
    """Return the table of both models, either of which may be missing, with a version that tells it from all others.

    `percent`: the static share, where neither says anything.
    """
    table = {
        "kind": KIND,
        "percent": percent,
        "min_local_percent": min_local_percent,
        "points": {pdm: balance_as_json(balance) for pdm, balance in chosen.items()},
        "untouched": untouched,
        "sensitivity": sensitivity,
    }
    text = json.dumps(table, sort_keys=True)
    return {**table, "version": hashlib.sha256(text.encode()).hexdigest()[:16]}


def _floor(share: float) -> float:
    """Return a share with few digits, never more than it is."""
    return math.floor(share * 10**DIGITS) / 10**DIGITS


def _ceil(share: float) -> float:
    """Return a share with few digits, never less than it is."""
    return math.ceil(share * 10**DIGITS) / 10**DIGITS
