"""What a host takes awake and asleep, by a power profile. Estimates, never measurements. Pure.

Zombieland (EuroSys'18), section 6.6.1, Table 3: percent of a machine's maximum. Awake is S0 with the InfiniBand card in
use, s3 and off are S3 and S4 with a card that wakes the machine, sz is the paper's own estimate (equation 1). Of
lowpower-s0 the paper has no figure: it is for whoever has measured it on machines of his own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pondstack.domain.errors import BadRequest
from pondstack.domain.power import MODES

IDLE, CONFIGURED = "idle", "configured"


@dataclass(frozen=True, slots=True)
class PowerProfile:
    """Percent of the power at full load: awake and idle, and asleep, by driver; without those nobody has measured."""

    name: str
    idle_percent: float
    asleep_percent: Mapping[str, float]

    def asleep(self, driver: str) -> float | None:
        """Return what a host takes that sleeps by a driver, None: unknown; an emulated sleep saves nothing."""
        known = self.asleep_percent.get(driver)
        return self.idle_percent if known is None and driver in MODES and MODES[driver].emulated else known

    def awake(self, load: float) -> float:
        """Return what an awake host takes under a load from 0 to 1: linear between idle and full load."""
        return self.idle_percent + (100.0 - self.idle_percent) * min(1.0, load)


PROFILES: Mapping[str, PowerProfile] = {
    "hp": PowerProfile("hp", 53.84, {"sz": 12.67, "s3": 11.03, "off": 6.81}),
    "dell": PowerProfile("dell", 44.77, {"sz": 11.15, "s3": 8.71, "off": 8.31}),
}
"""The paper's two machines: HP Compaq Elite 8300 and Dell Precision Tower 5810."""


def profile_of(name: str, percent: Mapping[str, str | float]) -> PowerProfile:
    """Return a profile by its name; `percent`: that of CONFIGURED, by IDLE and by driver. Raises BadRequest."""
    if name != CONFIGURED:
        if name not in PROFILES:
            raise BadRequest(f"power_profile is one of {', '.join((*PROFILES, CONFIGURED))}, not {name!r}")
        return PROFILES[name]
    try:
        figures = {state: float(value) for state, value in percent.items()}
    except (TypeError, ValueError):
        figures = {}
    legal = all(0.0 <= value <= 100.0 and (state == IDLE or state in MODES) for state, value in figures.items())
    if IDLE not in figures or not legal:
        raise BadRequest(
            f"power_profile = {CONFIGURED} needs power_percent, from 0 to 100 for {IDLE}, and for any of "
            f"{', '.join(MODES)}; it is {dict(percent)}"
        )
    idle = figures.pop(IDLE)
    return PowerProfile(CONFIGURED, idle, figures)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Watts of one host awake and idle, and asleep by its driver; None: the profile has no figure of it."""

    profile: str
    idle_watts: float
    asleep_watts: float | None

    @classmethod
    def of(cls, profile: str, host_watts: float, idle_percent: float, asleep_percent: float | None) -> "Estimate":
        """Return that of a host of `host_watts` at full load."""
        asleep = None if asleep_percent is None else host_watts * asleep_percent / 100.0
        return cls(profile, host_watts * idle_percent / 100.0, asleep)


def estimate(profile: PowerProfile, host_watts: float, driver: str) -> Estimate:
    """Return what a host of `host_watts` at full load takes."""
    return Estimate.of(profile.name, host_watts, profile.idle_percent, profile.asleep(driver))


def saved_watts(each: Estimate, fallen_asleep: int, woken: int) -> float | None:
    """Return what is saved once hosts that idled sleep; what their load takes goes with it to other hosts.

    None: nobody knows what one takes asleep.
    """
    return None if each.asleep_watts is None else (fallen_asleep - woken) * (each.idle_watts - each.asleep_watts)
