"""What a pool's hardware adds to the latency of memory: ports, retimers and switches (Pond, section 4.1, Fig. 7, 8)."""

from pondstack.planner.settings import Settings

EMC_SOCKETS = 16
"""Sockets that one external memory controller connects without a switch."""
NEAR_SOCKETS = 8
"""Sockets that are near enough to do without retimers."""
SWITCH_SOCKETS = 32


def extra_ns(topology: str, pool_sockets: int, settings: Settings) -> float:
    """Return the nanoseconds over local DRAM, both directions.

    emc: a multi-headed controller, with retimers beyond 8 sockets and a switch beyond 16. switch: one at any size.
    """
    if topology == "emc" and pool_sockets <= NEAR_SOCKETS:
        return settings.cxl_ns
    if topology == "emc" and pool_sockets <= EMC_SOCKETS:
        return settings.cxl_ns + 2 * settings.retimer_ns
    return settings.cxl_ns + settings.switch_ns + 4 * settings.retimer_ns


def latency_percent(topology: str, pool_sockets: int, settings: Settings) -> float:
    """Return the pool's latency in percent of that of local DRAM."""
    return 100.0 * (1 + extra_ns(topology, pool_sockets, settings) / settings.local_ns)
