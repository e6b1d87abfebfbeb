"""What a host takes when it is awake and when it serves memory asleep. Estimates, never measurements. Pure.

Zombieland, section 6.6.1, Table 3: percent of a machine's maximum. Sz is the paper's own estimate (equation 1); awake
is S0 with the InfiniBand card in use.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PowerProfile:
    """Percent of the power at full load: awake and idle, and asleep while the memory serves (Sz)."""

    idle_percent: float
    zombie_percent: float


PROFILES: Mapping[str, PowerProfile] = {
    "hp": PowerProfile(idle_percent=53.84, zombie_percent=12.67),
    "dell": PowerProfile(idle_percent=44.77, zombie_percent=11.15),
}
"""The paper's two machines: HP Compaq Elite 8300 and Dell Precision Tower 5810."""


def saved_watts(profile: str, host_watts: float, fallen_asleep: int, woken: int) -> float:
    """Return what is saved once hosts that idled sleep; what their load takes goes with it to other hosts."""
    found = PROFILES[profile]
    return (fallen_asleep - woken) * host_watts * (found.idle_percent - found.zombie_percent) / 100.0
