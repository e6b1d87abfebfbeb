"""What `pondstack-manage model` prints."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pondstack.ledger.records import ModelRecord
from pondstack.prediction import report


def listed(records: Sequence[ModelRecord]) -> str:
    """Return a line for each model."""
    if not records:
        return "no models: the static share serves"
    return "\n".join(
        f"{item.version}  {item.state:9}  made {_time(item.created_at)}  promoted {_time(item.promoted_at)}  "
        f"UM {item.manifest['newest']['candidate']['um']:.1f} %  OP {item.manifest['newest']['candidate']['op']:.1f} %"
        for item in records
    )


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
    lines = [
        f"{record.version} ({record.state}), kind {record.kind}, SHA-256 {record.sha256}",
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
    return "\n".join(lines)


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
