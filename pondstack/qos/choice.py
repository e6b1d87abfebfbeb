"""What is done in one round of the monitor: worst first, each VM once, within the rates. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from pondstack.domain.qos import TOUCHED, QosAction, QosMode, Verdict
from pondstack.qos.judge import FIXED, Judgement, Limits, to_mitigate
from pondstack.qos.pace import Pace, Past

RETRY_SECONDS = 3600.0
"""After a mitigation that failed, none of this VM begins for so long."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done about an over-predicted VM, and why."""

    judgement: Judgement
    action: QosAction
    reason: str


def choose(
    judgements: Iterable[Judgement], past: Iterable[Past], pace: Pace, limits: Limits, mode: QosMode
) -> list[Decision]:
    """Return what becomes of each over-predicted VM that no mitigation is under way for, the worst first."""
    items = list(past)
    under_way = {item.consumer_uuid for item in items if item.open}
    before = {item.consumer_uuid for item in items if item.final}
    failed = {item.consumer_uuid for item in items if item.failed and item.age_seconds < RETRY_SECONDS}
    touched = [item for item in judgements if item.verdict in TOUCHED and item.guest.consumer_uuid not in under_way]
    return [_decide(item, before, failed, pace, limits, mode) for item in sorted(touched, key=_order)]


def _order(item: Judgement) -> tuple[bool, float, float, str]:
    """Worst first: by expected slowdown; who is not known comes after them, by what it touched."""
    expected = item.expected_percent
    return expected is None, -(expected or 0.0), -(item.guest.touched_mib or 0.0), item.guest.consumer_uuid


def _decide(item: Judgement, before: set[str], failed: set[str], pace: Pace, limits: Limits, mode: QosMode) -> Decision:
    guest = item.guest
    if not to_mitigate(item, limits):
        return Decision(item, QosAction.LEAVE, _why_left(item))
    if guest.consumer_uuid in before:
        return Decision(item, QosAction.ONCE, "it was mitigated before; an operator may force it")
    if guest.consumer_uuid in failed:
        return Decision(item, QosAction.WAIT, "its last mitigation failed less than an hour ago")
    if guest.migrating:
        return Decision(item, QosAction.WAIT, "it has two allocations: it is moved")
    obstacle = pace.obstacle(guest.host)
    if obstacle:
        return Decision(item, QosAction.WAIT, obstacle)
    pace.begin(guest.host)
    return Decision(item, QosAction.MITIGATE if mode is QosMode.ON else QosAction.WOULD, describe(item))


def _why_left(item: Judgement) -> str:
    if item.guest.split_source == FIXED:
        return f"{describe(item)}; its flavor fixes its pool memory"
    if item.verdict is Verdict.UNKNOWN:
        return f"{describe(item)}; [qos] unknown_sensitivity leaves such a guest alone"
    return describe(item)


def describe(item: Judgement) -> str:
    """Return a verdict in words."""
    guest, slowdown = item.guest, item.slowdown
    text = (
        f"touched {guest.touched_mib or 0:.0f} of {guest.pool_mib} MiB of pool memory, limit {item.limit_mib:.0f} MiB"
    )
    if slowdown is None:
        return f"{text}; no model knows its counters"
    bound = "nothing is insensitive" if slowdown.threshold is None else f"insensitive up to {slowdown.threshold:.2f} %"
    return (
        f"{text}; model {slowdown.version} expects {slowdown.percent:.2f} % slowdown with all memory in the pool "
        f"({item.expected_percent or 0:.2f} % as it is), {bound} at a PDM of {item.pdm_percent:g} %"
    )
