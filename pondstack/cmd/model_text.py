"""What `pondstack-manage model` prints."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pondstack.db.manifest import CORRUPT
from pondstack.db.store.registry import ModelState
from pondstack.domain.telemetry import Source
from pondstack.ledger.records import ModelRecord
from pondstack.prediction import latency, latency_report, report

DAY = 86400.0


def listed(records: Sequence[ModelRecord], max_age_days: int, now: datetime) -> str:
    """Return a line for each model."""
    if not records:
        return "no models: the static share serves"
    return "\n".join(_listed(item, max_age_days, now) for item in records)


def _listed(item: ModelRecord, max_age_days: int, now: datetime) -> str:
    line = f"{item.version}  {item.state:9}  made {_time(item.created_at)}"
    if CORRUPT in item.manifest:
        return f"{line}  CORRUPT: {item.manifest[CORRUPT]}"
    if item.state == ModelState.FAILED:
        return f"{line}  {item.manifest['failed']}"
    newest = item.manifest["newest"]["candidate"]
    figures = "  ".join(f"{name.upper()} {value:.1f} %" for name, value in newest.items())
    line += f"  promoted {_time(item.promoted_at)}  {figures}"
    if item.manifest.get("source") == Source.SYNTHETIC:
        line += "  SYNTHETIC"
    if item.state == ModelState.DEMOTED:
        line += f"  {item.manifest['demoted']['text']}"
    why = stale(item, max_age_days, now)
    return f"{line}  STALE: {why}" if why else line


def stand_in(kind: str) -> str:
    """Return what decides where no model of a kind runs."""
    return "nothing" if kind == latency.KIND else "the static share"


def without(kind: str) -> str:
    """Return what that comes to."""
    return "no instance counts as insensitive" if kind == latency.KIND else "the static share serves"


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
    if CORRUPT in known:
        return f"{record.version} ({record.state}) is corrupt: {known[CORRUPT]}; pondstack-manage model rollback"
    if record.state == ModelState.FAILED:
        return f"{record.version}: a training at {known['trained_at']} that left no model: {known['failed']}"
    head = [
        f"{record.version} ({record.state}), kind {record.kind}, SHA-256 {record.sha256}",
        *([known["demoted"]["text"]] if "demoted" in known else []),
    ]
    return "\n".join(head + (_latency(known) if record.kind == latency.KIND else _untouched(known)))


def _latency(known: dict[str, Any]) -> list[str]:
    return [
        latency_report.training(known),
        latency_report.origin(known),
        latency_report.predictor(known),
        "",
        "insensitive workloads (LI) against false positives (FP), percent; chosen for each tolerated slowdown (PDM)",
        *(f"  {line}" for line in latency_report.chosen(known)),
        "",
        latency_report.budget(known),
        report.verdict(known),
    ]


def _untouched(known: dict[str, Any]) -> list[str]:
    return [
        report.training(known),
        f"labels: {report.labels(known)}",
        f"quantile {known['quantile']}, slices of {known['slice_mib']} MiB, ONNX opset {known['opset']}, "
        f"largest difference to LightGBM {known['parity']:.1g}",
        "",
        "curve: untouched memory (UM) against over-predictions (OP), percent; margins with and without history",
        *(f"  {line}" for line in report.curve(known)),
        "",
        f"chosen by Eq. 1: {report.choice(known)}",
        report.expected(known),
        report.verdict(known),
    ]


def served(record: ModelRecord) -> list[str]:
    """Return what the leader noted of a model that serves: the points of Eq. 1 for all PDMs, and the budget."""
    return ["", *report.serving(record.serving)] if record.state == ModelState.RUNNING and record.serving else []


def used_up(record: ModelRecord) -> str:
    """Return why a model that runs gives no instance pool memory now, "" where its budget holds."""
    budget = record.serving.get("budget", {})
    if record.state != ModelState.RUNNING or budget.get("left", 1.0) > 0:
        return ""
    return f"the models' budget is used up, new auto instances get all local memory: {budget['text']}"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
