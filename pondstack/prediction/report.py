"""What a model's manifest says, as people read it: for pondstack-manage and for the command line alike. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

POINTS = 12
"""Lines of a curve; the manifest has all."""

Manifest = Mapping[str, Any]


def training(manifest: Manifest) -> str:
    """Return when and on how much a model was trained."""
    data = manifest["data"]
    return (
        f"trained at {manifest['trained_at']} on starts from {data['window'][0]} to {data['window'][1]}: "
        f"{data['examples'][0]} to learn, {data['examples'][1]} to set margins, {data['examples'][2]} to judge"
    )


def labels(manifest: Manifest) -> str:
    """Return how many of its labels were measured, and how many made up."""
    return ", ".join(f"{count} {source}" for source, count in sorted(manifest["data"]["lifetimes"].items()))


def curve(manifest: Manifest) -> list[str]:
    """Return a line for each of some points of the curve, the chosen one marked."""
    chosen = manifest["chosen"]["untouched"]
    return [_line(item, item == chosen) for item in _some(manifest["curve"], chosen)]


def choice(manifest: Manifest) -> str:
    """Return within what budget the point was chosen."""
    return f"budget {manifest['budget_percent']:g} % of the instances (TP {manifest['target_percent']:g} %)"


def expected(manifest: Manifest) -> str:
    """Return what is expected of the chosen point."""
    chosen = manifest["chosen"]
    return (
        f"expected pool share {chosen['pool_percent']:.1f} % of the memory, "
        f"mispredictions {chosen['mispredictions_percent']:.1f} % of the instances"
    )


def serving(found: Manifest) -> list[str]:
    """Return what the leader noted of the models that serve: the points of Eq. 1 by PDM, and the budget."""
    lines = [f"serves with: {', '.join(f'{kind} {version}' for kind, version in sorted(found['models'].items()))}"]
    for pdm, point in sorted(found["points"].items(), key=lambda item: float(item[0])):
        first, second = point["insensitive"], point["untouched"]
        name = f"PDM {pdm:>2} %" if float(pdm) else "no LI  "
        lines.append(
            f"  {name}: pool share LI {first['gain']:.1f} + UM {second['gain']:.1f} = {point['pool_percent']:.1f} %, "
            f"mispredictions FP {first['loss']:.1f} + OP {second['loss']:.1f} = {point['mispredictions_percent']:.1f} %"
        )
    return [*lines, f"budget: {found['budget']['text']}"]


def verdict(manifest: Manifest) -> str:
    """Return how it compares with the others on the newest data."""
    text: str = manifest["verdict"]["text"]
    return text


def _some(points: Sequence[Manifest], chosen: Manifest) -> list[Manifest]:
    step = max(1, len(points) // POINTS)
    return [item for place, item in enumerate(points) if place % step == 0 or item == chosen]


def _line(point: Manifest, chosen: bool) -> str:
    margins = "off"
    if "known" in point:
        margins = f"margins {_margin(point['known'])} / {_margin(point['cold'])}"
    mark = "  <- chosen" if chosen else ""
    op = f"OP {point.get('measured_op', 0.0):5.1f} (bound {point['loss']:5.1f})"
    return f"UM {point['gain']:5.1f}  {op}  {margins}{mark}"


def _margin(margin: float) -> str:
    return "no pool" if margin > 1 else f"{100 * margin:+.0f} %"
