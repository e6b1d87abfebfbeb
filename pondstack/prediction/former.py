"""The predictor as a scheduler of the former release takes it: one table, for the default PDM, decided ahead. Pure."""

from collections.abc import Mapping
from typing import Any

from pondstack.domain.allowance import Allowance
from pondstack.domain.share import untouched_mib
from pondstack.domain.sizing import PondSpecs
from pondstack.prediction.risk import Risks, Untouched

UNTOUCHED = "um"
STATIC = "static"


def describe_formerly(about: Mapping[str, Any], allowance: Allowance | None, slice_mib: int) -> dict[str, Any]:
    """Return what a former scheduler decides by: the untouched memory alone; nothing, while the budget is used up.

    It knows no budget: between two looks it may decide more than is left.
    """
    percent = about["percent"]
    part = about.get("untouched")
    if allowance is not None and not allowance.allows("" if part is None else part["version"]):
        return {"kind": STATIC, "percent": 0}
    if part is None:
        return {"kind": STATIC, "percent": percent}
    risk = Risks(about["points"]).of(PondSpecs().pdm_percent)
    projects: dict[str, dict[str, list[Any]]] = {}
    for project, sizes in part["projects"].items():
        for size, figures in sizes.items():
            found, memory_mib = Untouched(*figures), int(size.split("/")[0])
            margin = risk.margin(found)
            given = untouched_mib(found.less(margin, memory_mib), memory_mib, slice_mib)
            projects.setdefault(project, {})[size] = [given, found.describe(margin, memory_mib)]
    return {
        "kind": UNTOUCHED,
        "version": part["version"],
        "percent": percent,
        "over_prediction_percent": risk.over_predictions,
        "projects": projects,
    }
