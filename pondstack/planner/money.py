"""What memory costs: tiers of DRAM and SSD, and whether a pool is worth its hardware."""

import math

from pondstack.planner.estimate import estimate
from pondstack.planner.figures import Dram, Money, Tiering
from pondstack.planner.latency import EMC_SOCKETS, SWITCH_SOCKETS
from pondstack.planner.settings import Settings

HOURS_PER_YEAR = 8766
BUY, DO_NOT_BUY, UNDECIDED = "buy", "do not buy", "undecided"


def total_cost(required_gib: float, ratio: float, settings: Settings) -> float:
    """Return TCM in $: required/R of DRAM, the rest on SSD (hybrid pool, Eq. 1 and 2)."""
    dram_gib = required_gib / ratio
    return settings.dram_price_per_gib * dram_gib + settings.ssd_price_per_gib * (required_gib - dram_gib)


def tiering(settings: Settings, required_gib: float = 1.0) -> tuple[Tiering, ...]:
    """Return the cost by overcommit ratio; `required_gib` is what the servers ask for (hybrid pool, Fig. 7).

    Raises ValueError for a ratio below 1.
    """
    if min(settings.overcommit_ratios, default=1.0) < 1:
        raise ValueError("overcommit_ratios: each must be 1 or more, which is DRAM alone")
    whole = total_cost(required_gib, 1.0, settings)
    costs = [(ratio, total_cost(required_gib, ratio, settings)) for ratio in settings.overcommit_ratios]
    return tuple(Tiering(ratio, cost, 100 * (1 - cost / whole)) for ratio, cost in costs)


def hardware(topology: str, pool_sockets: int, settings: Settings) -> tuple[float, float]:
    """Return price in $ and power in W of a pool's hardware besides DRAM, per socket."""
    controllers = math.ceil(pool_sockets / EMC_SOCKETS)
    switched = topology == "switch" or pool_sockets > EMC_SOCKETS
    switches = math.ceil(pool_sockets / SWITCH_SOCKETS) if switched else 0
    price = controllers * settings.emc_price + switches * settings.switch_price
    watts = controllers * settings.emc_watts + switches * settings.switch_watts
    return price / pool_sockets + settings.cable_price, watts / pool_sockets


def money(dram: Dram, settings: Settings) -> Money:
    """Return what a pool saves and costs per socket, and whether to buy it."""
    price, watts = hardware(dram.topology, dram.pool_sockets, settings)
    dollars_per_watt = settings.lifetime_years * HOURS_PER_YEAR / 1000 * settings.energy_price_per_kwh
    without, needed = dram.baseline_gib_per_socket.by_seed, dram.gib_per_socket.by_seed
    gib = [before - after for before, after in zip(without, needed, strict=True)]
    saved = [settings.dram_price_per_gib * value for value in gib]
    energy = [dollars_per_watt * (watts - settings.dram_watts_per_gib * value) for value in gib]
    net = estimate([one - price - other for one, other in zip(saved, energy, strict=True)], settings)
    verdict = BUY if net.low > 0 else DO_NOT_BUY if net.high <= 0 else UNDECIDED
    return Money(
        policy=dram.policy,
        topology=dram.topology,
        pool_sockets=dram.pool_sockets,
        dram_saved=estimate(saved, settings),
        hardware_cost=price,
        energy_cost=estimate(energy, settings),
        net_saved=net,
        verdict=verdict,
    )
