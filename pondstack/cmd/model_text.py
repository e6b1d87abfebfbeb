"""What `pondstack-manage model` prints."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pondstack.db.store.registry import ModelRecord, ModelState

POINTS = 12
"""Lines of a curve; the manifest has all."""


DAY = 86400.0


def listed(records: Sequence[ModelRecord], max_age_days: int, now: datetime) -> str:
    """Return a line for each model."""
    if not records:
        return "no models: the static share serves"
    return "\n".join(_listed(item, max_age_days, now) for item in records)


def _listed(item: ModelRecord, max_age_days: int, now: datetime) -> str:
    line = f"{item.version}  {item.state:9}  made {_time(item.created_at)}"
    if item.state == ModelState.FAILED:
        return f"{line}  {item.manifest['failed']}"
    newest = item.manifest["newest"]["candidate"]
    line += f"  promoted {_time(item.promoted_at)}  UM {newest['um']:.1f} %  OP {newest['op']:.1f} %"
    if item.state == ModelState.DEMOTED:
        line += f"  {item.manifest['demoted']['text']}"
    why = stale(item, max_age_days, now)
    return f"{line}  STALE: {why}" if why else line


def stale(item: ModelRecord, max_age_days: int, now: datetime) -> str:
    """Return why a model that runs is stale, "" for one that is not."""
    days = (now.timestamp() - item.created_at) / DAY
    if item.state != ModelState.RUNNING or not max_age_days or days <= max_age_days:
        return ""
    return f"made {days:.0f} days ago, more than [model] max_age_days = {max_age_days}"


def trained(version: str, manifest: dict[str, Any], promoted: bool) -> str:
    """Return what a training came to."""
    verdict = manifest["verdict"]
    if promoted:
        return f"{version} is promoted; {verdict['text']}"
    beaten_by = ", ".join(verdict["not_better_than"])
    why = f"not better than: {beaten_by}" if beaten_by else "as --no-promote asks"
    return f"{version} is stored and not promoted ({why}); {verdict['text']}"


def shown(record: ModelRecord) -> str:
    """Return a model's figures: curve, chosen point, expected pool share and mispredictions."""
    known = record.manifest
    if record.state == ModelState.FAILED:
        return f"{record.version}: a training at {known['trained_at']} that left no model: {known['failed']}"
    chosen, data = known["chosen"], known["data"]
    point = chosen["untouched"]
    lines = [
        f"{record.version} ({record.state}), kind {record.kind}, SHA-256 {record.sha256}",
        *([known["demoted"]["text"]] if "demoted" in known else []),
        f"trained at {known['trained_at']} on starts from {data['window'][0]} to {data['window'][1]}: "
        f"{data['examples'][0]} to learn, {data['examples'][1]} to set margins, {data['examples'][2]} to judge",
        "labels: " + ", ".join(f"{count} {source}" for source, count in sorted(data["lifetimes"].items())),
        f"quantile {known['quantile']}, slices of {known['slice_mib']} MiB, ONNX opset {known['opset']}, "
        f"largest difference to LightGBM {known['parity']:.1g}",
        "",
        "curve: untouched memory (UM) against over-predictions (OP), percent; margins with and without history",
        *(_line(item, item == point) for item in _some(known["curve"], point)),
        "",
        f"chosen by Eq. 1: budget {known['budget_percent']:g} % of the instances (TP {known['target_percent']:g} %)",
        f"expected pool share {chosen['pool_percent']:.1f} % of the memory, "
        f"mispredictions {chosen['mispredictions_percent']:.1f} % of the instances",
        known["verdict"]["text"],
    ]
    return "\n".join(lines)


def _some(curve: Sequence[dict[str, Any]], chosen: dict[str, Any]) -> list[dict[str, Any]]:
    step = max(1, len(curve) // POINTS)
    return [item for place, item in enumerate(curve) if place % step == 0 or item == chosen]


def _line(point: dict[str, Any], chosen: bool) -> str:
    margins = "off"
    if "known" in point:
        margins = f"margins {_margin(point['known'])} / {_margin(point['cold'])}"
    mark = "  <- chosen" if chosen else ""
    op = f"OP {point.get('measured_op', 0.0):5.1f} (bound {point['loss']:5.1f})"
    return f"  UM {point['gain']:5.1f}  {op}  {margins}{mark}"


def _margin(margin: float) -> str:
    return "no pool" if margin > 1 else f"{100 * margin:+.0f} %"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
