"""How hosts sleep: what each power driver keeps, and what it is estimated to draw. Pure.

Zombieland (EuroSys'18), section 3 (states) and Table 3 (share of a machine's maximum power in each of them).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from pondstack.domain.errors import BadRequest


@dataclass(frozen=True, slots=True)
class PowerMode:
    """A way to sleep. `serves`: memory stays reachable for RDMA. `wakes_by_bus`: a process of the host can be called.

    `emulated`: nothing is saved; it is for tests and for racks on one machine.
    """

    name: str
    serves: bool
    wakes_by_bus: bool = False
    emulated: bool = False


SZ = PowerMode("sz", serves=True)
LOW_POWER_S0 = PowerMode("lowpower-s0", serves=True, wakes_by_bus=True)
S3 = PowerMode("s3", serves=False)
OFF = PowerMode("off", serves=False)
FROZEN = PowerMode("frozen", serves=True, wakes_by_bus=True, emulated=True)

MODES: Mapping[str, PowerMode] = MappingProxyType({mode.name: mode for mode in (SZ, LOW_POWER_S0, S3, OFF, FROZEN)})


def mode_of(name: str) -> PowerMode:
    """Return a mode by its name; raises BadRequest."""
    try:
        return MODES[name]
    except KeyError:
        raise BadRequest(f"a host sleeps by {', '.join(MODES)}, not by {name!r}") from None


class Profile(NamedTuple):
    """What a machine draws, in percent of its most: awake and idle, and by driver. `source`: who says so."""

    idle: float
    asleep: Mapping[str, float]
    source: str


AWAKE = "idle"
TABLE_3: Mapping[str, Profile] = MappingProxyType(
    {
        # S0 with the card in use; S3 and S4 with the card on, for Wake-on-LAN. Sz is the paper's own estimate (Eq. 1).
        "zombieland-hp": Profile(53.84, {"sz": 12.67, "s3": 11.03, "off": 6.81}, "Zombieland, Table 3, HP"),
        "zombieland-dell": Profile(44.77, {"sz": 11.15, "s3": 8.71, "off": 8.31}, "Zombieland, Table 3, Dell"),
    }
)


def estimated_watts(profile: Profile, most_watts: float, driver: str | None) -> float | None:
    """Return what a machine is estimated to draw asleep by a driver, None: awake and idle; None where nobody says.

    An emulated driver saves nothing.
    """
    if driver is None or (driver in MODES and MODES[driver].emulated):
        percent: float | None = profile.idle
    else:
        percent = profile.asleep.get(driver)
    return None if percent is None else most_watts * percent / 100.0


def parse_profile(text: Mapping[str, str]) -> Profile:
    """Return a configured profile, of percentages by driver and `idle`; raises BadRequest."""
    try:
        shares = {name: float(value) for name, value in text.items()}
    except ValueError as error:
        raise BadRequest(f"[power] profile: a share is a number in percent: {error}") from None
    unknown = set(shares) - {AWAKE, *MODES}
    if unknown or AWAKE not in shares or not all(0 <= share <= 100 for share in shares.values()):
        raise BadRequest(f"[power] profile has idle and any of {', '.join(MODES)}, each from 0 to 100 percent")
    return Profile(shares.pop(AWAKE), shares, "[power] profile")
