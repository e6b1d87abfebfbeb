"""What the manifest of a latency-sensitivity model says, as people read it. Pure."""

from collections.abc import Mapping
from typing import Any

Manifest = Mapping[str, Any]


def origin(manifest: Manifest) -> str:
    """Return whether it was measured, loudly where it was not."""
    counts = ", ".join(f"{count} {source}" for source, count in sorted(manifest["data"]["samples"].items()))
    loud = "" if manifest["source"] == "measured" else "SYNTHETIC: made-up samples, which say nothing of real guests; "
    return f"{loud}runs: {counts}; counted on {', '.join(manifest['data'].get('cpus', ['?']))}"


def training(manifest: Manifest) -> str:
    """Return when and on how much a model was trained."""
    data = manifest["data"]
    left = f", {data['left_out']} left out for want of a counter" if data["left_out"] else ""
    return (
        f"trained at {manifest['trained_at']} on samples from {data['window'][0]} to {data['window'][1]}: "
        f"{data['workloads'][0]} workloads to learn, {data['workloads'][1]} others to judge{left}"
    )


def predictor(manifest: Manifest) -> str:
    """Return what predicts, from what."""
    return (
        f"predictor {manifest['predictor']}, ONNX opset {manifest['opset']}, "
        f"largest difference to the trained one {manifest['parity']:.1g} %; counters: {', '.join(manifest['features'])}"
    )


def chosen(manifest: Manifest) -> list[str]:
    """Return a line for the chosen point of each PDM."""
    return [_line(pdm, point, len(manifest["curves"][pdm])) for pdm, point in manifest["chosen"].items()]


def budget(manifest: Manifest) -> str:
    """Return within what the points were chosen."""
    return f"budget {manifest['budget_percent']:g} % of the workloads (TP {manifest['target_percent']:g} %)"


def _line(pdm: str, point: Manifest, points: int) -> str:
    if "threshold" not in point:
        return f"PDM {pdm:>3} %: off, of {points} points none is within the budget"
    return (
        f"PDM {pdm:>3} %: LI {point['gain']:5.1f}  FP {point['measured_fp']:5.2f} (bound {point['loss']:5.2f})  "
        f"predicted slowdown up to {point['threshold']:.2f} %, of {points} points"
    )
