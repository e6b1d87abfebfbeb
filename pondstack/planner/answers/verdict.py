"""The answer in one sentence."""

from collections.abc import Sequence

from pondstack.planner.figures import Dram, Money, Slowdown
from pondstack.planner.money import BUY, DO_NOT_BUY

NOT_TO_BE_HAD = "oracle"
"""No policy knows the future: what it would save bounds the others, and is no reason to buy."""


def verdict(money: Sequence[Money], dram: Sequence[Dram], slowdown: Sequence[Slowdown]) -> str:
    """Return what to do: the pool that nets the most among those that keep the slowdown budget, if one nets at all."""
    if not money:
        return "Do not buy: the cloud has too few sockets for a pool."
    offers = [
        (worth, need)
        for worth, need, slowed in zip(money, dram, slowdown, strict=True)
        if worth.policy != NOT_TO_BE_HAD and slowed.within_budget
    ]
    if not offers:
        return "Do not buy: no policy keeps the slowdown budget."
    worth, need = max(offers, key=lambda offer: offer[0].net_saved.mean)
    what = (
        f"policy {worth.policy} with pools of {worth.pool_sockets} sockets ({worth.topology}) saves "
        f"{_range(need.saved_percent.mean, need.saved_percent.low, need.saved_percent.high)} % of the DRAM and nets "
        f"{_range(worth.net_saved.mean, worth.net_saved.low, worth.net_saved.high)} $ per socket"
    )
    if worth.verdict == BUY:
        return f"Buy: {what}."
    if worth.verdict == DO_NOT_BUY:
        return f"Do not buy: even the best, {what}."
    return f"Undecided: the best, {what}; the interval includes zero."


def _range(mean: float, low: float, high: float) -> str:
    return f"{mean:.1f} ({low:.1f} to {high:.1f})"
