"""How hosts sleep, and what each power driver keeps (Zombieland, EuroSys'18, section 3). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pondstack.domain.errors import BadRequest


@dataclass(frozen=True, slots=True)
class PowerMode:
    """A way to sleep. `serves`: memory stays reachable for RDMA. `wakes_by_bus`: a process of the host can be called.

    `has_doorbell`: that process looks at a page into which other hosts write by RDMA, to wake it.
    `emulated`: nothing is saved; it is for tests and for racks on one machine.
    """

    name: str
    serves: bool
    wakes_by_bus: bool = False
    has_doorbell: bool = False
    emulated: bool = False


SZ = PowerMode("sz", serves=True)
LOW_POWER_S0 = PowerMode("lowpower-s0", serves=True, wakes_by_bus=True, has_doorbell=True)
S3 = PowerMode("s3", serves=False)
OFF = PowerMode("off", serves=False)
FROZEN = PowerMode("frozen", serves=True, wakes_by_bus=True, has_doorbell=True, emulated=True)

MODES: Mapping[str, PowerMode] = MappingProxyType({mode.name: mode for mode in (SZ, LOW_POWER_S0, S3, OFF, FROZEN)})


def mode_of(name: str) -> PowerMode:
    """Return a mode by its name; raises BadRequest."""
    try:
        return MODES[name]
    except KeyError:
        raise BadRequest(f"a host sleeps by {', '.join(MODES)}, not by {name!r}") from None
