"""Decisions computed ahead: what each project's instances of each size leave untouched, as plain JSON types. Pure.

The table travels to whoever places instances; pondstack.prediction.untouched_table reads it without any model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pondstack.prediction.features import History, Record, Request, Vocabulary, spread, vector
from pondstack.prediction.trainer import KIND, ShareModel, shares
from pondstack.prediction.untouched import SPREAD, Margins, less, pool_mib
from pondstack.prediction.untouched_table import COLD, size_key


def build(
    model: ShareModel,
    version: str,
    manifest: dict[str, Any],
    history: History,
    requests: Iterable[Request],
    as_of: datetime,
    slice_mib: int,
) -> dict[str, Any]:
    """Return the table: `projects` maps a project, or "" for all without history, to sizes, to [MiB, reason].

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
    margins = Margins(**manifest["margins"])
    projects: dict[str, dict[str, list[Any]]] = {}
    for (project, size), item, records, share in zip(wanted, wanted.values(), known, shares(model, rows), strict=True):
        margin = margins.known if records else margins.cold
        left = less(share, margin, item.memory_mib, spread(records, SPREAD))
        untouched = pool_mib(left, item.memory_mib, slice_mib)
        projects.setdefault(project, {})[size] = [
            untouched,
            _reason(share, share - left, records),
        ]
    return {
        "kind": KIND,
        "version": version,
        "as_of": as_of.isoformat(),
        "slice_mib": slice_mib,
        "over_prediction_percent": manifest["chosen"]["untouched"]["loss"],
        "projects": projects,
    }


def _reason(share: float, margin: float, records: Sequence[Record]) -> str:
    predicted = f"{100 * share:.0f} % untouched predicted, {100 * margin:.0f} % taken off"
    if margin > 1:
        predicted = "no share keeps to the budget"
    if not records:
        return f"{predicted}, by size alone: its project has no history"
    least = min(item.share for item in records)
    return (
        f"{predicted}, by {len(records)} instances of its project in four weeks (least untouched {100 * least:.0f} %)"
    )
