"""What a host takes when it is awake, asleep, and when it serves memory asleep. Estimates, never measurements. Pure.

Zombieland, section 6.6.1, Table 3: percent of a machine's maximum. Sz is the paper's own estimate (equation 1); awake
is S0 with the InfiniBand card in use, suspended S3 with the card, which wakes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PowerProfile:
    """Percent of the power at full load: awake and idle, asleep while the memory serves (Sz), and asleep (S3)."""

    idle_percent: float
    zombie_percent: float
    suspended_percent: float

    def awake_percent(self, load: float) -> float:
        """Return what an awake host takes under a load from 0 to 1: linear between idle and full load."""
        return self.idle_percent + (100.0 - self.idle_percent) * min(1.0, load)


PROFILES: Mapping[str, PowerProfile] = {
    "hp": PowerProfile(idle_percent=53.84, zombie_percent=12.67, suspended_percent=11.03),
    "dell": PowerProfile(idle_percent=44.77, zombie_percent=11.15, suspended_percent=8.71),
}
"""The paper's two machines: HP Compaq Elite 8300 and Dell Precision Tower 5810."""


def saved_watts(profile: str, host_watts: float, fallen_asleep: int, woken: int) -> float:
    """Return what is saved once hosts that idled sleep; what their load takes goes with it to other hosts."""
    found = PROFILES[profile]
    return (fallen_asleep - woken) * host_watts * (found.idle_percent - found.zombie_percent) / 100.0
